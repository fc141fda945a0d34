import { type Kysely, type RawBuilder, sql } from 'kysely';
import { ago, removeBatch } from '../remove-batch.ts';
import type { IdempotentResponse, Schema } from '../schema.ts';

/** Identifies a request with an idempotency key. */
export interface IdempotencyId {
  readonly tenantId: string;
  /** The route, such as `sandboxes.create`. The same key on another route is a different key. */
  readonly operation: string;
  readonly key: string;
}

/**
 * The right of one request to create the resource of a key. It ends when another request takes the key over, which can
 * happen as soon as the lock has expired.
 */
export interface IdempotencyHold extends IdempotencyId {
  /** A UUID that identifies the request. */
  readonly holder: string;
}

/** The state of a request with an idempotency key. */
export type IdempotencyClaim =
  | { readonly kind: 'claimed' }
  /** The earlier holder may have created `subject`, and can no longer do so. */
  | { readonly kind: 'taken_over'; readonly subject: string }
  | { readonly kind: 'running' }
  | { readonly kind: 'done'; readonly response: IdempotentResponse }
  | { readonly kind: 'other_body' };

/** Stored answers, so that a repeated request has no second effect. */
export class IdempotencyRepository {
  readonly #db: Kysely<Schema>;

  constructor(db: Kysely<Schema>) {
    this.#db = db;
  }

  /**
   * Claims the key for `lockSeconds`, or returns the state of the request that has claimed it.
   * `subject` is the id of the resource to create. Keys older than `lifetimeSeconds` can be claimed again.
   */
  async claim(
    hold: IdempotencyHold,
    request: { bodyHash: Buffer; subject: string; lockSeconds: number; lifetimeSeconds: number },
  ): Promise<IdempotencyClaim> {
    const lock = sql`now() + make_interval(secs => ${request.lockSeconds})`;
    const expired = sql`held.created_at < now() - make_interval(secs => ${request.lifetimeSeconds})`;
    const claimed = await sql`
      insert into idempotency_keys as held
        (tenant_id, operation, key, holder, body_hash, subject, locked_until)
      values (${hold.tenantId}, ${hold.operation}, ${hold.key}, ${hold.holder}, ${request.bodyHash},
        ${request.subject}, ${lock})
      on conflict (tenant_id, operation, key) do update
      set body_hash = excluded.body_hash, subject = excluded.subject, holder = excluded.holder,
          response = null, locked_until = excluded.locked_until, created_at = now()
      where ${expired}
      returning 1`.execute(this.#db);
    return claimed.rows.length > 0 ? { kind: 'claimed' } : this.#inspect(hold, request);
  }

  async #inspect(
    hold: IdempotencyHold,
    request: { bodyHash: Buffer; lockSeconds: number },
  ): Promise<IdempotencyClaim> {
    const row = await this.#db
      .selectFrom('idempotency_keys')
      .selectAll()
      .where((eb) => eb.and(keyOf(hold)))
      .executeTakeFirst();
    // Released between the two statements. The caller retries, as for a running request.
    if (row === undefined) return { kind: 'running' };
    if (!row.body_hash.equals(request.bodyHash)) return { kind: 'other_body' };
    if (row.response !== null) return { kind: 'done', response: row.response };
    return this.#takeOver(hold, request.lockSeconds);
  }

  async #takeOver(hold: IdempotencyHold, lockSeconds: number): Promise<IdempotencyClaim> {
    const taken = await this.#db
      .updateTable('idempotency_keys')
      .set({
        holder: hold.holder,
        locked_until: sql`now() + make_interval(secs => ${lockSeconds})`,
      })
      .where((eb) => eb.and(keyOf(hold)))
      .where('locked_until', '<', sql<Date>`now()`)
      .where('response', 'is', null)
      .returning('subject')
      .executeTakeFirst();
    return taken === undefined
      ? { kind: 'running' }
      : { kind: 'taken_over', subject: taken.subject };
  }

  /** Extends the lock of a running request. */
  async renew(hold: IdempotencyHold, lockSeconds: number): Promise<void> {
    await this.#db
      .updateTable('idempotency_keys')
      .set({ locked_until: sql`now() + make_interval(secs => ${lockSeconds})` })
      .where((eb) => eb.and(holdOf(hold)))
      .execute();
  }

  /** Changes the id of the resource to create. False when another request has taken the key over. */
  async setSubject(hold: IdempotencyHold, subject: string): Promise<boolean> {
    const changed = await this.#db
      .updateTable('idempotency_keys')
      .set({ subject })
      .where((eb) => eb.and(holdOf(hold)))
      .executeTakeFirst();
    return changed.numUpdatedRows === 1n;
  }

  /** Stores the answer, unless another request has taken the key over. */
  async complete(hold: IdempotencyHold, response: IdempotentResponse): Promise<void> {
    await this.#db
      .updateTable('idempotency_keys')
      .set({ response: JSON.stringify(response) })
      .where((eb) => eb.and(holdOf(hold)))
      .execute();
  }

  /**
   * Frees the key of a request that created nothing, so that a retry can claim it. False when another request has taken
   * the key over.
   */
  async release(hold: IdempotencyHold): Promise<boolean> {
    const released = await this.#db
      .deleteFrom('idempotency_keys')
      .where((eb) => eb.and(holdOf(hold)))
      .where('response', 'is', null)
      .executeTakeFirst();
    return released.numDeletedRows === 1n;
  }

  /** Removes up to `limit` keys that are older than this. Returns their number. */
  removeExpired(lifetimeSeconds: number, limit: number): Promise<number> {
    const isOld = sql`created_at < ${ago(lifetimeSeconds)}`;
    return removeBatch(this.#db, 'idempotency_keys', isOld, limit);
  }
}

/**
 * A query with one row while the request still holds its key. It locks the key, so that nobody takes it over before the
 * end of the transaction: what the transaction inserts is visible to the next holder. A request without a key always
 * gets the row.
 */
export function whileHeld(hold: IdempotencyHold | undefined): RawBuilder<unknown> {
  if (hold === undefined) return sql`select 1`;
  return sql`select 1 from idempotency_keys where tenant_id = ${hold.tenantId}
    and operation = ${hold.operation} and key = ${hold.key} and holder = ${hold.holder} for share`;
}

function keyOf(id: IdempotencyId) {
  return { tenant_id: id.tenantId, operation: id.operation, key: id.key };
}

function holdOf(hold: IdempotencyHold) {
  return { ...keyOf(hold), holder: hold.holder };
}
