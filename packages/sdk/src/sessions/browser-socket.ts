import { SESSION_PROTOCOL } from '@svc/contract';
import { SvcError } from '../errors.ts';
import type { OpenSocket } from './socket.ts';

/** For browsers: sends the token in the query, because a page cannot set headers. It cannot read why an upgrade was refused. */
export const openBrowserSocket: OpenSocket = async ({ url, token, signal }, handlers) => {
  signal.throwIfAborted();
  const address = new URL(url);
  address.searchParams.set('token', token);
  const socket = new WebSocket(address, [SESSION_PROTOCOL]);
  socket.binaryType = 'arraybuffer';
  const opened = Promise.withResolvers<void>();
  const abort = () => {
    socket.close();
    opened.reject(signal.reason);
  };
  signal.addEventListener('abort', abort, { once: true });
  socket.addEventListener('open', () => opened.resolve());
  socket.addEventListener('message', ({ data }: { data: unknown }) => {
    if (typeof data === 'string') handlers.message(data);
    else if (data instanceof ArrayBuffer) handlers.message(new Uint8Array(data));
  });
  let isOpen = false;
  socket.addEventListener('close', ({ code, reason }) => {
    if (isOpen) handlers.closed({ code, reason });
    else opened.reject(unreachable(address));
  });
  try {
    await opened.promise;
    isOpen = true;
  } finally {
    signal.removeEventListener('abort', abort);
  }
  return {
    send: (text) => socket.send(text),
    get unsentBytes() {
      return socket.bufferedAmount;
    },
    setPaused: () => undefined,
    close: () => socket.close(1000),
  };
};

function unreachable({ origin }: URL): SvcError {
  return new SvcError({
    code: 'connection_failed',
    detail: `Could not open a WebSocket at ${origin}; the session may have ended, or its token.`,
  });
}
