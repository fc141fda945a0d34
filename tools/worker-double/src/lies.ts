import type { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';

/** The operations that a worker serves over HTTP. */
export type Operation =
  | 'create'
  | 'list'
  | 'destroy'
  | 'exec'
  | 'download'
  | 'upload'
  | 'pause'
  | 'resume'
  | 'cancel'
  | 'config-update'
  | 'logs';

/** An answer, exactly as it is sent. */
export interface Answer {
  /** Default 200. */
  readonly status?: number;
  /** Media type; default `application/json`. */
  readonly type?: string;
  readonly body: string | Buffer | Readable;
}

/** Turns the honest answer of an operation into another one. */
export type Lie = (truth: unknown) => Answer;

/** Sends the answer that `lie` makes of the result of `handler`. */
export async function tell(
  lie: Lie,
  request: FastifyRequest,
  reply: FastifyReply,
  handler: (request: FastifyRequest, reply: FastifyReply) => Promise<unknown>,
): Promise<unknown> {
  const { status = 200, type = 'application/json', body } = lie(await handler(request, reply));
  return reply.code(status).type(type).send(body);
}
