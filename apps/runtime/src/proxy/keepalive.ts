import type { WebSocket } from 'ws';

/** Unanswered pings in a row after which a connection counts as dead. */
const MAX_MISSED = 2;

export interface KeepaliveOptions {
  readonly intervalMs: number;
  /** Whether the socket is not being read, so that answers go unnoticed. */
  readonly isPaused: () => boolean;
  readonly onTimeout: () => void;
}

/** Pings a connection at an interval and reports two unanswered pings in a row. Returns a function that stops the pings. */
export function keepAlive(socket: WebSocket, options: KeepaliveOptions): () => void {
  let missed = 0;
  const answered = () => {
    missed = 0;
  };
  socket.on('pong', answered);
  const timer = setInterval(() => {
    if (socket.readyState !== socket.OPEN) return;
    if (options.isPaused()) missed = 0;
    if (missed >= MAX_MISSED) {
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
