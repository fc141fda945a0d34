import type { Socket } from 'node:net';
import { withDeadline } from '@svc/service-kit/concurrency';
import { MicrovmError } from '../../microvm-error.ts';
import { connectToGuest, type GuestAddress } from '../connect-to-guest.ts';

export const REQUEST_MS = 15_000;
/** A transfer is abandoned after this long without progress. */
const STALL_MS = 60_000;

/** Connects to the daemon in a guest and sends a request. The caller destroys the connection. */
export async function openRequest(
  address: GuestAddress,
  request: Readonly<Record<string, unknown>>,
  signal: AbortSignal,
): Promise<Socket> {
  const socket = await openConnection(address, signal);
  socket.write(`${JSON.stringify(request)}\n`);
  return socket;
}

/** Connects to the daemon in a guest. The caller destroys the connection. */
export async function openConnection(address: GuestAddress, signal: AbortSignal): Promise<Socket> {
  const socket = await connectToGuest(address, withDeadline(signal, REQUEST_MS));
  return socket.on('error', () => socket.destroy());
}

/** Ends a connection that makes no progress. Returns what ends the watch over it. */
export function abandonWhenStalled(socket: Socket): () => void {
  const abandon = () => socket.destroy(new MicrovmError('timeout', 'the transfer has stalled'));
  socket.setTimeout(STALL_MS, abandon);
  return () => socket.setTimeout(0, abandon);
}
