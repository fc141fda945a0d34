import type { WebSocket } from 'ws';
import type { CloseReason } from './close-codes.ts';

/** Closes a connection, and terminates it if the other side does not answer within `graceMs`. */
export function closeSocket(
  socket: WebSocket,
  { code, reason }: CloseReason,
  graceMs: number,
): void {
  if (socket.readyState === socket.CLOSED) return;
  socket.on('error', () => undefined);
  socket.close(code, reason);
  // The answer arrives after the frames that are still unread.
  socket.resume();
  const timer = setTimeout(() => socket.terminate(), graceMs);
  socket.once('close', () => clearTimeout(timer));
}
