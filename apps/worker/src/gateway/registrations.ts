import type { Socket } from 'node:net';
import { type Budget, KeyedBudget, TokenBucket } from '@svc/service-kit/concurrency';
import { FailureLog } from '@svc/service-kit/logging';
import type { LlmAccount } from './account.ts';
import { type GatewayLimits, HELD_SHARING } from './limits.ts';
import { dialectOfRoute } from './request/endpoints.ts';
import type { HeldBytes } from './request/request-body.ts';
import { llmRoute } from './route.ts';

/** Bound of the endpoints of earlier accounts. More rotations than that during one task affect only unused ones. */
const MAX_OUTGOING = 8;

/** A registered sandbox, with its connections and its use of the limits. */
export class Registration implements HeldBytes {
  /** Of its requests, for the log. */
  readonly failures = new FailureLog();
  #account: LlmAccount;
  /** Replaced accounts of other endpoints by route, for the task that was running then. */
  readonly #outgoing = new Map<string, LlmAccount>();
  /** The route of the last request. */
  #lastRoute: string | undefined;
  readonly #limits: GatewayLimits;
  readonly #tenantHeld: Budget;
  readonly #sockets = new Set<Socket>();
  readonly #ended = new AbortController();
  readonly #rate: TokenBucket;
  #requests = 0;
  #held = 0;

  /** `tenantHeld`: the bytes of bodies that all sandboxes of the tenant may hold. */
  constructor(account: LlmAccount, limits: GatewayLimits, tenantHeld: Budget) {
    this.#account = account;
    this.#limits = limits;
    this.#tenantHeld = tenantHeld;
    this.#rate = new TokenBucket(limits.requestRate);
  }

  /** Aborts when the sandbox is no longer registered. */
  get ended(): AbortSignal {
    return this.#ended.signal;
  }

  /** The current account. */
  get account(): LlmAccount {
    return this.#account;
  }

  /** Replaces the account, see `LlmAccounts.update`. */
  replace(account: LlmAccount): void {
    this.#outgoing.set(routeOf(this.#account), this.#account);
    this.#outgoing.delete(routeOf(account));
    this.#account = account;
    const unused = [...this.#outgoing.keys()].find((route) => route !== this.#lastRoute);
    if (this.#outgoing.size > MAX_OUTGOING && unused !== undefined) this.#outgoing.delete(unused);
  }

  /** The account for a request on this route. Undefined for a dialect that the sandbox may not use. */
  accountFor(route: string | undefined): LlmAccount | undefined {
    if (route === undefined) return undefined;
    this.#lastRoute = route;
    const earlier = this.#outgoing.get(route);
    if (earlier !== undefined) return earlier;
    if (route === routeOf(this.#account)) this.#outgoing.clear();
    // After a restart of the worker, only the current account is known.
    return dialectOfRoute(route) === this.#account.dialect ? this.#account : undefined;
  }

  /** Closes a connection beyond the bound. */
  addSocket(socket: Socket): void {
    if (this.#sockets.size >= this.#limits.connections) {
      socket.destroy();
      return;
    }
    this.#sockets.add(socket);
    socket.once('close', () => this.#sockets.delete(socket));
  }

  /** Counts a request, whatever its answer will be. False beyond the rate. */
  beginRequest(): boolean {
    return this.#rate.take();
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
    if (this.#held + bytes > this.#limits.heldBytes || bytes > this.#tenantHeld.left) return false;
    this.#tenantHeld.take(bytes);
    this.#held += bytes;
    return true;
  }

  give(bytes: number): void {
    this.#held -= bytes;
    this.#tenantHeld.give(bytes);
  }

  end(): void {
    this.#ended.abort(new Error('the sandbox is no longer registered'));
    for (const socket of this.#sockets) socket.destroy();
  }
}

function routeOf({ dialect, baseUrl }: LlmAccount): string {
  return llmRoute(dialect, baseUrl);
}

/** The registered sandboxes, by address. */
export class Registrations {
  readonly #byAddress = new Map<string, Registration>();
  readonly #limits: GatewayLimits;
  readonly #held: KeyedBudget;

  constructor(limits: GatewayLimits) {
    this.#limits = limits;
    this.#held = new KeyedBudget(limits.tenantHeldBytes, HELD_SHARING);
  }

  at(address: string | undefined): Registration | undefined {
    // A dual-stack socket shows an IPv4 address in this form.
    return this.#byAddress.get(address?.replace(/^::ffff:/, '') ?? '');
  }

  add(address: string, account: LlmAccount): () => void {
    const registration = new Registration(account, this.#limits, this.#held.of(account.tenantId));
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
