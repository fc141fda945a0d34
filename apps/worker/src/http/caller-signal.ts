import { clientGoneSignal } from '@svc/service-kit';
import type { FastifyReply } from 'fastify';
import type { WorkerContext } from './context.ts';

/** Aborts when the caller disconnects or the worker ends. */
export function callerSignal(reply: FastifyReply, context: WorkerContext): AbortSignal {
  return AbortSignal.any([clientGoneSignal(reply), context.ending]);
}
