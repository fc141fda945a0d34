import type { Socket } from 'node:net';
import { withDeadline } from '@svc/service-kit/concurrency';
import { MicrovmError } from '../facade.ts';
import { type ChannelAddress, openChannelConnection } from './channel-connection.ts';

const CONNECT_MS = 5_000;

/** Connections to the agent runtime of one guest. They are their callers', but none outlives its guest. */
export class AgentLines {
  readonly #address: ChannelAddress;
  readonly #connectMs: number;
  readonly #sockets = new Set<Socket>();
  readonly #closed = new AbortController();

  constructor(address: ChannelAddress, connectMs = CONNECT_MS) {
    this.#address = address;
    this.#connectMs = connectMs;
  }

  /** Connects; a runtime that does not listen yet is waited for. Throws `guest_unreachable`. */
  async dial(signal: AbortSignal): Promise<Socket> {
    const either = AbortSignal.any([signal, this.#closed.signal]);
    const deadline = withDeadline(either, this.#connectMs);
    try {
      const socket = await openChannelConnection(this.#address, deadline);
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

  /** Cuts every connection, and connects no more: a VM that has ended sends no end of its own. */
  close(): void {
    this.#closed.abort(new MicrovmError('guest_unreachable', 'the connections were closed'));
    for (const socket of this.#sockets) socket.destroy();
  }
}
