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

/**
 * Ends a connection on which the guest makes no progress. Returns what ends the watch over it.
 * @param isHeldUp whether the guest waits for this side
 */
export function abandonWhenStalled(
  socket: Socket,
  isHeldUp: () => boolean = () => false,
  stallMs = STALL_MS,
): () => void {
  const abandon = () => {
    if (isHeldUp()) socket.setTimeout(stallMs, abandon);
    else socket.destroy(new MicrovmError('timeout', 'the transfer has stalled'));
  };
  socket.setTimeout(stallMs, abandon);
  return () => socket.setTimeout(0, abandon);
}
