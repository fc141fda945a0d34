import type { FastifyReply } from 'fastify';

/** The client disconnected before the response was complete. */
export class ClientGoneError extends Error {
  override readonly name = 'ClientGoneError';
  constructor() {
    super('the client closed the connection before the answer was complete');
  }
}

/** A signal that aborts with {@link ClientGoneError} when the client disconnects before the response is complete. */
export function clientGoneSignal(reply: FastifyReply): AbortSignal {
  const controller = new AbortController();
  const { raw } = reply;
  const check = (): void => {
    if (!raw.writableFinished) controller.abort(new ClientGoneError());
  };
  if (raw.destroyed) check();
  else raw.once('close', check);
  return controller.signal;
}

/** Whether an error is a {@link ClientGoneError} or was caused by one. */
export function isClientGone(error: unknown): boolean {
  if (error instanceof ClientGoneError) return true;
  return error instanceof Error && error.cause !== undefined && isClientGone(error.cause);
}
