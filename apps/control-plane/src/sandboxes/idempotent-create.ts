import { createHash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { LIMITS, ServiceError } from '@svc/contract';
import type { IdempotencyClaim, IdempotencyId, Store } from '@svc/store';

/** Short, so that a retry after a crash waits little; renewed while the request runs. */
const LOCK_SECONDS = 15;
const RENEW_MS = 5_000;
const POLL_MS = 100;
const LONGEST_WAIT_MS = 60_000;
const VISIBLE_ASCII = /^[\x21-\x7e]+$/;

/** A creation with an idempotency key. */
export interface KeyedCreate<T> {
  readonly tenantId: string;
  readonly key: string;
  readonly body: unknown;
  /** Id of the new resource, unless an earlier request with this key has created one. */
  readonly subject: string;
  readonly signal: AbortSignal;
  /** Creates the resource under this id. The answer is stored, so it must not contain secrets. */
  create(subject: string): Promise<T>;
  /** The answer for a resource that an interrupted request did create. */
  recover(subject: string): Promise<T | undefined>;
}

/**
 * Creates at most one resource per key. A repeated request gets the answer of the first one, and waits while
 * that one is running. A request that fails frees its key.
 */
export class IdempotentCreate<T> {
  readonly #keys: Store['idempotency'];
  readonly #operation: string;

  /** Keys are scoped by `operation`. */
  constructor(keys: Store['idempotency'], operation: string) {
    this.#keys = keys;
    this.#operation = operation;
  }

  /** @throws ServiceError `idempotency_key_invalid`, `idempotency_key_reused`, `idempotency_in_progress` */
  async run(request: KeyedCreate<T>): Promise<T> {
    if (request.key.length > LIMITS.idempotencyKeyChars || !VISIBLE_ASCII.test(request.key)) {
      throw new ServiceError('idempotency_key_invalid');
    }
    const { tenantId, key } = request;
    const id: IdempotencyId = { tenantId, operation: this.#operation, key };
    const claim = await this.#claim(id, request);
    switch (claim.kind) {
      case 'other_body':
        throw new ServiceError('idempotency_key_reused');
      case 'running':
        throw new ServiceError('idempotency_in_progress', undefined, {
          headers: { 'retry-after': '1' },
        });
      case 'done':
        return claim.response.body as T;
      case 'taken_over':
        return this.#make(id, request, claim.subject);
      case 'claimed':
        return this.#make(id, request);
    }
  }

  async #claim(id: IdempotencyId, request: KeyedCreate<T>): Promise<IdempotencyClaim> {
    const deadline = Date.now() + LONGEST_WAIT_MS;
    for (;;) {
      const claim = await this.#keys.claim(id, {
        bodyHash: hashBody(request.body),
        subject: request.subject,
        lockSeconds: LOCK_SECONDS,
        lifetimeSeconds: LIMITS.idempotencySeconds,
      });
      if (claim.kind !== 'running' || Date.now() > deadline) return claim;
      await delay(POLL_MS, undefined, { signal: request.signal });
    }
  }

  async #make(id: IdempotencyId, request: KeyedCreate<T>, earlier?: string): Promise<T> {
    const renewal = setInterval(() => this.#renew(id), RENEW_MS);
    try {
      const recovered = earlier === undefined ? undefined : await request.recover(earlier);
      if (earlier !== undefined && recovered === undefined) {
        await this.#keys.setSubject(id, request.subject);
      }
      const body = recovered ?? (await request.create(request.subject));
      await this.#keys.complete(id, { status: 201, body });
      return body;
    } catch (error) {
      // If the database fails as well, the lock expires.
      await this.#keys.release(id).catch(() => undefined);
      throw error;
    } finally {
      clearInterval(renewal);
    }
  }

  #renew(id: IdempotencyId): void {
    // One missed renewal does no harm. After many, a retry looks for the created resource.
    this.#keys.renew(id, LOCK_SECONDS).catch(() => undefined);
  }
}

/** Bodies that differ only in the order of members have the same hash. */
function hashBody(body: unknown): Buffer {
  return createHash('sha256').update(JSON.stringify(body, sortMembers)).digest();
}

function sortMembers(_key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}
