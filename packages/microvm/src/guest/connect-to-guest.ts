import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { MicrovmError } from '../microvm-error.ts';

const RETRY_MS = 5;
/**
 * Bytes that are read before anybody asks for them. The limit counts bytes, but each TCP segment becomes a buffer of a few
 * hundred bytes, and a guest may send segments of one.
 */
const READ_AHEAD_BYTES = 1024;

export interface GuestAddress {
  readonly host: string;
  readonly port: number;
}

/**
 * Opens a TCP connection to a guest. Retries until the guest listens; `signal` is the only time limit. A later failure of
 * the connection needs no listener: it closes.
 */
export async function connectToGuest(
  { host, port }: GuestAddress,
  signal: AbortSignal,
): Promise<Socket> {
  for (;;) {
    signal.throwIfAborted();
    const socket = await tryConnect(host, port, signal);
    if (socket !== undefined) return socket;
    await sleep(RETRY_MS, undefined, { signal });
  }
}

/** Undefined while the guest refuses the connection. */
function tryConnect(host: string, port: number, signal: AbortSignal): Promise<Socket | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<Socket | undefined>();
  // `connect` passes what it does not know on to the stream.
  const options = { host, port, noDelay: true, readableHighWaterMark: READ_AHEAD_BYTES };
  const socket = connect(options);
  const abort = () => {
    socket.destroy();
    reject(signal.reason);
  };
  signal.addEventListener('abort', abort, { once: true });
  socket.once('connect', () => {
    signal.removeEventListener('abort', abort);
    resolve(socket);
  });
  // This listener stays: the guest may reset the connection before its next owner listens, and `close` follows.
  socket.on('error', (error: NodeJS.ErrnoException) => {
    signal.removeEventListener('abort', abort);
    if (error.code === 'ECONNREFUSED' || error.code === 'ECONNRESET') resolve(undefined);
    else
      reject(
        new MicrovmError('guest_unreachable', 'the guest cannot be reached', { cause: error }),
      );
  });
  return promise;
}
