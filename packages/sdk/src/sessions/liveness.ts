import type { WebSocket } from 'ws';

/** A connection is lost after 16 to 20 s: a service whose worker takes no data may stop reading for 15 s. */
const INTERVAL_MS = 4_000;
const MAX_SILENT_INTERVALS = 4;

/**
 * Pings a connection on which nothing arrives, and terminates it when nothing does for some intervals, not even answers:
 * the machine at its other end, or the way there, is gone without a word. Does nothing while the socket is paused.
 * @param intervalMs time between two looks at the connection
 */
export function watchLiveness(socket: WebSocket, intervalMs: number = INTERVAL_MS): void {
  // Intervals rather than time, so that a stall of this process is not taken for silence.
  let silent = 0;
  const heard = () => {
    silent = 0;
  };
  const timer = setInterval(() => {
    if (socket.isPaused) heard();
    if (socket.readyState !== socket.OPEN) return;
    if (silent >= MAX_SILENT_INTERVALS) {
      socket.terminate();
      return;
    }
    if (silent > 0) socket.ping();
    silent += 1;
  }, intervalMs);
  socket
    .on('ping', heard)
    .on('pong', heard)
    .on('message', heard)
    .once('close', () => clearInterval(timer));
}
