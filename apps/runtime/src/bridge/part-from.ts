import type { WebSocket } from 'ws';
import type { CloseReason } from './close-codes.ts';

/** Closes a connection, and cuts it when the other side has not answered after `graceMs`. */
export function partFrom(socket: WebSocket, { code, reason }: CloseReason, graceMs: number): void {
  if (socket.readyState === socket.CLOSED) return;
  socket.on('error', () => undefined);
  socket.close(code, reason);
  // The answer stands behind what was not read.
  socket.resume();
  const timer = setTimeout(() => socket.terminate(), graceMs);
  socket.once('close', () => clearTimeout(timer));
}
