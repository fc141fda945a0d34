import type { Socket } from 'node:net';
import { MicrovmError } from '../../microvm-error.ts';

/** Ends the connection when the signal aborts, until it is disposed of. */
export function destroyOnAbort(socket: Socket, signal: AbortSignal): Disposable {
  const abort = () => socket.destroy();
  if (signal.aborted) abort();
  signal.addEventListener('abort', abort, { once: true });
  return { [Symbol.dispose]: () => signal.removeEventListener('abort', abort) };
}

/**
 * The error to report for a failure of the connection. It fails when the signal aborts: then the abort is the cause,
 * whatever the failure looks like.
 */
export function reasonOf(error: unknown, signal: AbortSignal): unknown {
  if (signal.aborted) return signal.reason;
  if (error instanceof MicrovmError || !(error instanceof Error) || !('code' in error))
    return error;
  return new MicrovmError('guest_unreachable', 'the guest closed its channel', { cause: error });
}
