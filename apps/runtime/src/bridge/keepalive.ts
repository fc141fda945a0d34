import type { WebSocket } from 'ws';

/** Pings without an answer that end a connection. */
const MOST_MISSED = 2;

export interface KeepaliveOptions {
  readonly intervalMs: number;
  /** Whether the socket is not read at the moment, so that no answer can be seen. */
  readonly isPaused: () => boolean;
  readonly onTimeout: () => void;
}

/** Pings a connection at an interval, and tells when two pings in a row were not answered. Gives what ends it. */
export function keepAlive(socket: WebSocket, options: KeepaliveOptions): () => void {
  let missed = 0;
  const answered = () => {
    missed = 0;
  };
  socket.on('pong', answered);
  const timer = setInterval(() => {
    if (socket.readyState !== socket.OPEN) return;
    if (options.isPaused()) missed = 0;
    if (missed >= MOST_MISSED) {
      clearInterval(timer);
      options.onTimeout();
      return;
    }
    missed += 1;
    socket.ping();
  }, options.intervalMs);
  timer.unref();
  return () => {
    clearInterval(timer);
    socket.off('pong', answered);
  };
}
