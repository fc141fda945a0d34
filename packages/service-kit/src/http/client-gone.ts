import type { FastifyReply } from 'fastify';

/** Why a request was given up: nobody is there to read the answer. */
export class ClientGoneError extends Error {
  override readonly name = 'ClientGoneError';
  constructor() {
    super('the client closed the connection before the answer was complete');
  }
}

/** A signal that aborts with {@link ClientGoneError} when the client leaves before the answer is complete. */
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

/** Whether an error is, or came of, the client having left. */
export function isClientGone(error: unknown): boolean {
  if (error instanceof ClientGoneError) return true;
  return error instanceof Error && error.cause !== undefined && isClientGone(error.cause);
}
