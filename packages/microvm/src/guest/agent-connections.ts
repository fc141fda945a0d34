import type { Socket } from 'node:net';
import { withDeadline } from '@svc/service-kit/concurrency';
import { MicrovmError } from '../microvm-error.ts';
import { connectToGuest, type GuestAddress } from './connect-to-guest.ts';

const CONNECT_MS = 5_000;

/** Connections to the agent runtime of one guest. Their callers own them, but none outlives the guest. */
export class AgentConnections {
  readonly #address: GuestAddress;
  readonly #connectMs: number;
  readonly #sockets = new Set<Socket>();
  readonly #closed = new AbortController();

  constructor(address: GuestAddress, connectMs = CONNECT_MS) {
    this.#address = address;
    this.#connectMs = connectMs;
  }

  /** Connects, and waits for a runtime that does not listen yet. Throws `guest_unreachable`. */
  async dial(signal: AbortSignal): Promise<Socket> {
    const either = AbortSignal.any([signal, this.#closed.signal]);
    const deadline = withDeadline(either, this.#connectMs);
    try {
      const socket = await connectToGuest(this.#address, deadline);
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
      return socket;
    } catch (error) {
      if (!deadline.aborted || either.aborted) throw error;
      throw new MicrovmError('guest_unreachable', 'the agent runtime does not answer', {
        cause: error,
      });
    }
  }

  /** Closes every connection and refuses new ones. A VM that has ended does not close its connections itself. */
  close(): void {
    this.#closed.abort(new MicrovmError('guest_unreachable', 'the connections were closed'));
    for (const socket of this.#sockets) socket.destroy();
  }
}
