import { createHash, randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { LIMITS, ServiceError } from '@svc/contract';
import type { IdempotencyClaim, IdempotencyHold, Store } from '@svc/store';

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
  /**
   * Creates the resource under this id, with statements that require the hold. The answer is stored, so it must not
   * contain secrets.
   */
  create(subject: string, hold: IdempotencyHold): Promise<T>;
  /**
   * The answer, if an attempt that was interrupted or failed did create this resource. Otherwise makes sure that the
   * attempt can no longer create it.
   */
  settle(subject: string): Promise<T | undefined>;
}

/**
 * Creates at most one resource per key, on all control planes together. A repeated request gets the answer of the first
 * one, and waits while that one is running. A request that fails frees its key.
 *
 * A repeated request gets its answer even if a rule would refuse it by now, so rules are checked by what creates the resource.
 *
 * A key is bound to the id of its resource before anything is created. A request whose lock has expired, because it was
 * stalled or its control plane is gone, loses the key to a retry. From then on it cannot insert anything, and the retry
 * decides what becomes of the resource that it may have inserted.
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
    const holder = randomUUID();
    const hold: IdempotencyHold = { tenantId, operation: this.#operation, key, holder };
    const claim = await this.#claim(hold, request);
    switch (claim.kind) {
      case 'other_body':
        throw new ServiceError('idempotency_key_reused');
      case 'running':
        throw inProgress();
      case 'done':
        return claim.response.body as T;
      case 'taken_over':
        return this.#whileRenewed(hold, () => this.#continue(hold, request, claim.subject));
      case 'claimed':
        return this.#whileRenewed(hold, () => this.#create(hold, request));
    }
  }

  async #claim(hold: IdempotencyHold, request: KeyedCreate<T>): Promise<IdempotencyClaim> {
    const deadline = performance.now() + LONGEST_WAIT_MS;
    for (;;) {
      const claim = await this.#keys.claim(hold, {
        bodyHash: hashBody(request.body),
        subject: request.subject,
        lockSeconds: LOCK_SECONDS,
        lifetimeSeconds: LIMITS.idempotencySeconds,
      });
      if (claim.kind !== 'running' || performance.now() > deadline) return claim;
      await delay(POLL_MS, undefined, { signal: request.signal });
    }
  }

  async #whileRenewed(hold: IdempotencyHold, work: () => Promise<T>): Promise<T> {
    // One missed renewal does no harm. After many, a retry takes the key over.
    const renew = () => void this.#keys.renew(hold, LOCK_SECONDS).catch(() => undefined);
    const renewal = setInterval(renew, RENEW_MS);
    try {
      return await work();
    } finally {
      clearInterval(renewal);
    }
  }

  /** Continues an earlier request that may have created `subject`. */
  async #continue(hold: IdempotencyHold, request: KeyedCreate<T>, subject: string): Promise<T> {
    const created = await request.settle(subject);
    if (created !== undefined) return this.#complete(hold, created);
    // A new id, because the earlier request may still undo what it did under its own.
    if (!(await this.#keys.setSubject(hold, request.subject))) throw inProgress();
    return this.#create(hold, request);
  }

  async #create(hold: IdempotencyHold, request: KeyedCreate<T>): Promise<T> {
    const body = await request
      .create(request.subject, hold)
      .catch((error: unknown) => this.#afterFailure(hold, request, error));
    return this.#complete(hold, body);
  }

  /** The answer, if the failed attempt did create the resource. Otherwise frees the key and throws. */
  async #afterFailure(hold: IdempotencyHold, request: KeyedCreate<T>, error: unknown): Promise<T> {
    let released: boolean;
    try {
      const created = await request.settle(request.subject);
      if (created !== undefined) return created;
      released = await this.#keys.release(hold);
    } catch {
      // The database fails as well. The key stays bound to the id, and the lock expires: a retry settles it.
      throw error;
    }
    throw released ? error : inProgress(error);
  }

  /** Stores the answer. If that fails, the key stays bound to the resource, and a retry finds it. */
  async #complete(hold: IdempotencyHold, body: T): Promise<T> {
    await this.#keys.complete(hold, { status: 201, body }).catch(() => undefined);
    return body;
  }
}

function inProgress(cause?: unknown): ServiceError {
  return new ServiceError('idempotency_in_progress', undefined, { cause });
}

/** Bodies that differ only in the order of members have the same hash. */
function hashBody(body: unknown): Buffer {
  return createHash('sha256').update(JSON.stringify(body, sortMembers)).digest();
}

function sortMembers(_key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}
