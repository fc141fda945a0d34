import type { Socket } from 'node:net';
import { MicrovmError } from '../microvm-error.ts';
import { openRequest } from './channel/open-request.ts';
import { readAnswer } from './channel/read-answer.ts';
import type { GuestAddress } from './connect-to-guest.ts';
import { withTimeout } from './with-timeout.ts';

const CONNECT_MS = 15_000;

/**
 * Connections to servers on the loopback address of one guest. They go through the guest's daemon, since commands' SSH
 * forwards no ports and would encrypt. Their callers own them, but none outlives the guest.
 */
export class PortConnections {
  readonly #address: GuestAddress;
  readonly #token: string;
  readonly #sockets = new Set<Socket>();
  readonly #closed = new AbortController();

  constructor(address: GuestAddress, token: string) {
    this.#address = address;
    this.#token = token;
  }

  /** Connects. Throws `port_unreachable` when nothing listens, and `timeout` when the guest does not answer. */
  async dial(port: number, signal: AbortSignal): Promise<Socket> {
    const either = AbortSignal.any([signal, this.#closed.signal]);
    return withTimeout(CONNECT_MS, either, (until) => this.#open(port, until));
  }

  /** Closes every connection and refuses new ones. A VM that has ended does not close its connections itself. */
  close(): void {
    this.#closed.abort(new MicrovmError('guest_unreachable', 'the connections were closed'));
    for (const socket of this.#sockets) socket.destroy();
  }

  async #open(port: number, signal: AbortSignal): Promise<Socket> {
    const request = { op: 'connect', port, token: this.#token };
    const socket = await openRequest(this.#address, request, signal);
    try {
      await readAnswer(socket, signal);
    } catch (error) {
      socket.destroy();
      throw error;
    }
    this.#sockets.add(socket);
    socket.once('close', () => this.#sockets.delete(socket));
    return socket;
  }
}
