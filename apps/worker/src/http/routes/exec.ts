import {
  EVENT_STREAM_MEDIA_TYPE,
  ExecRequest,
  type ExecResponse,
  WorkerSandboxParams,
} from '@svc/contract';
import type { HttpServer } from '@svc/service-kit';
import type { FastifyReply } from 'fastify';
import { collectCommand } from '../../exec/collect-command.ts';
import { EventStream } from '../../exec/event-stream.ts';
import type { ExecSlot } from '../../exec/exec-slots.ts';
import { prepareCommand } from '../../exec/prepare-command.ts';
import { streamCommand } from '../../exec/stream-command.ts';
import type { Sandbox } from '../../sandbox/sandbox.ts';
import { callerSignal } from '../caller-signal.ts';
import type { WorkerContext } from '../context.ts';

/** `POST /sandboxes/:id/exec`: the complete output as JSON, or events if the caller accepts an event stream. */
export function execRoute(app: HttpServer, context: WorkerContext): void {
  app.post(
    '/sandboxes/:id/exec',
    { schema: { params: WorkerSandboxParams, body: ExecRequest } },
    async (request, reply) => {
      const sandbox = context.registry.get(request.params.id);
      const caller = callerSignal(reply, context);
      const slot = context.execSlots.enter(sandbox);
      context.execMetrics.started.inc();
      try {
        // Before the response begins, so that a failure is a plain error response.
        await prepareCommand(sandbox, request.body, caller);
      } catch (error) {
        slot.leave();
        throw error;
      }
      return wantsEvents(request.headers.accept)
        ? answerEvents(sandbox, request.body, slot, reply, caller)
        : answerWhole(sandbox, request.body, slot, caller);
    },
  );
}

function wantsEvents(accept: string | undefined): boolean {
  return accept?.toLowerCase().includes(EVENT_STREAM_MEDIA_TYPE) ?? false;
}

async function answerWhole(
  sandbox: Sandbox,
  request: ExecRequest,
  slot: ExecSlot,
  caller: AbortSignal,
): Promise<ExecResponse> {
  try {
    return await collectCommand(sandbox, request, slot.budget, caller);
  } finally {
    slot.leave();
  }
}

function answerEvents(
  sandbox: Sandbox,
  request: ExecRequest,
  slot: ExecSlot,
  reply: FastifyReply,
  caller: AbortSignal,
): FastifyReply {
  const events = new EventStream();
  void streamCommand(sandbox, request, events, caller).finally(slot.leave);
  return reply.type(EVENT_STREAM_MEDIA_TYPE).header('cache-control', 'no-store').send(events.body);
}
