import type { Socket } from 'node:net';
import type { LlmAccount } from './account.ts';
import type { GatewayLimits } from './limits.ts';
import type { HeldBytes } from './request/request-body.ts';

/** A registered sandbox, with its connections and its use of the limits. */
export class Registration implements HeldBytes {
  account: LlmAccount;
  readonly #limits: GatewayLimits;
  readonly #sockets = new Set<Socket>();
  readonly #ended = new AbortController();
  #requests = 0;
  #held = 0;

  constructor(account: LlmAccount, limits: GatewayLimits) {
    this.account = account;
    this.#limits = limits;
  }

  /** Aborts when the sandbox is no longer registered. */
  get ended(): AbortSignal {
    return this.#ended.signal;
  }

  addSocket(socket: Socket): void {
    this.#sockets.add(socket);
    socket.once('close', () => this.#sockets.delete(socket));
  }

  /** False when the bound of concurrent requests is reached. */
  startRequest(): boolean {
    if (this.#requests >= this.#limits.requests) return false;
    this.#requests += 1;
    return true;
  }

  endRequest(): void {
    this.#requests -= 1;
  }

  take(bytes: number): boolean {
    if (this.#held + bytes > this.#limits.heldBytes) return false;
    this.#held += bytes;
    return true;
  }

  give(bytes: number): void {
    this.#held -= bytes;
  }

  end(): void {
    this.#ended.abort(new Error('the sandbox is no longer registered'));
    for (const socket of this.#sockets) socket.destroy();
  }
}

/** The registered sandboxes, by address. */
export class Registrations {
  readonly #byAddress = new Map<string, Registration>();
  readonly #limits: GatewayLimits;

  constructor(limits: GatewayLimits) {
    this.#limits = limits;
  }

  at(address: string | undefined): Registration | undefined {
    // A dual-stack socket shows an IPv4 address in this form.
    return this.#byAddress.get(address?.replace(/^::ffff:/, '') ?? '');
  }

  add(address: string, account: LlmAccount): () => void {
    const registration = new Registration(account, this.#limits);
    this.#byAddress.get(address)?.end();
    this.#byAddress.set(address, registration);
    return () => {
      if (this.#byAddress.get(address) === registration) this.#byAddress.delete(address);
      registration.end();
    };
  }

  clear(): void {
    for (const registration of this.#byAddress.values()) registration.end();
    this.#byAddress.clear();
  }
}
