import { createHash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { LIMITS, ServiceError } from '@svc/contract';
import type { IdempotencyClaim, IdempotencyId, Store } from '@svc/store';

/** Renewed while the request runs, so that a retry after a crash need not wait long. */
const LOCK_SECONDS = 15;
const RENEW_MS = 5_000;
const POLL_MS = 100;
const LONGEST_WAIT_MS = 60_000;
const VISIBLE_ASCII = /^[\x21-\x7e]+$/;

/** One keyed request to make something. */
export interface KeyedCreate<T> {
  readonly tenantId: string;
  readonly key: string;
  readonly body: unknown;
  /** Id for what is made, unless an earlier request of this key has made one. */
  readonly subject: string;
  readonly signal: AbortSignal;
  /** Makes it under this id. What it answers is kept as it is, so it holds no secret. */
  create(subject: string): Promise<T>;
  /** The answer for what an interrupted request has made after all. */
  recover(subject: string): Promise<T | undefined>;
}

/**
 * Makes at most one thing for a key: a repeated request gets the answer of the first one, and
 * waits for it when it is still running. A request that made nothing frees its key again.
 */
export class IdempotentCreate<T> {
  readonly #keys: Store['idempotency'];
  readonly #operation: string;

  /** The same key for another operation is another key. */
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
      // Where the database fails as well, the lock runs out by itself.
      await this.#keys.release(id).catch(() => undefined);
      throw error;
    } finally {
      clearInterval(renewal);
    }
  }

  #renew(id: IdempotencyId): void {
    // A missed renewal matters only if many are missed, and then a retry checks what was made.
    this.#keys.renew(id, LOCK_SECONDS).catch(() => undefined);
  }
}

/** Two bodies are one when they hold the same values, in whatever order their members come. */
function hashBody(body: unknown): Buffer {
  return createHash('sha256').update(JSON.stringify(body, sortMembers)).digest();
}

function sortMembers(_key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}
