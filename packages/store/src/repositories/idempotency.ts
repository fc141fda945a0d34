import { type Kysely, sql } from 'kysely';
import type { IdempotentResponse, Schema } from '../schema.ts';

/** Identifies a request with an idempotency key. */
export interface IdempotencyId {
  readonly tenantId: string;
  /** The route, such as `sandboxes.create`. The same key on another route is a different key. */
  readonly operation: string;
  readonly key: string;
}

/** The state of a request with an idempotency key. */
export type IdempotencyClaim =
  | { readonly kind: 'claimed' }
  /** The first request ended without an answer (a crash) while creating `subject`. */
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
    id: IdempotencyId,
    request: { bodyHash: Buffer; subject: string; lockSeconds: number; lifetimeSeconds: number },
  ): Promise<IdempotencyClaim> {
    const lock = sql`now() + make_interval(secs => ${request.lockSeconds})`;
    const expired = sql`held.created_at < now() - make_interval(secs => ${request.lifetimeSeconds})`;
    const claimed = await sql`
      insert into idempotency_keys as held
        (tenant_id, operation, key, body_hash, subject, locked_until)
      values (${id.tenantId}, ${id.operation}, ${id.key}, ${request.bodyHash}, ${request.subject}, ${lock})
      on conflict (tenant_id, operation, key) do update
      set body_hash = excluded.body_hash, subject = excluded.subject, response = null,
          locked_until = excluded.locked_until, created_at = now()
      where ${expired}
      returning 1`.execute(this.#db);
    return claimed.rows.length > 0 ? { kind: 'claimed' } : this.#inspect(id, request);
  }

  async #inspect(
    id: IdempotencyId,
    request: { bodyHash: Buffer; lockSeconds: number },
  ): Promise<IdempotencyClaim> {
    const row = await this.#db
      .selectFrom('idempotency_keys')
      .selectAll()
      .where((eb) => eb.and(columns(id)))
      .executeTakeFirst();
    // Released between the two statements. The caller retries, as for a running request.
    if (row === undefined) return { kind: 'running' };
    if (!row.body_hash.equals(request.bodyHash)) return { kind: 'other_body' };
    if (row.response !== null) return { kind: 'done', response: row.response };
    return this.#takeOver(id, row.subject, request.lockSeconds);
  }

  async #takeOver(
    id: IdempotencyId,
    subject: string,
    lockSeconds: number,
  ): Promise<IdempotencyClaim> {
    const taken = await this.#db
      .updateTable('idempotency_keys')
      .set({ locked_until: sql`now() + make_interval(secs => ${lockSeconds})` })
      .where((eb) => eb.and(columns(id)))
      .where('locked_until', '<', sql<Date>`now()`)
      .where('response', 'is', null)
      .executeTakeFirst();
    return taken.numUpdatedRows === 1n ? { kind: 'taken_over', subject } : { kind: 'running' };
  }

  /** Extends the claim of a running request. */
  async renew(id: IdempotencyId, lockSeconds: number): Promise<void> {
    await this.#db
      .updateTable('idempotency_keys')
      .set({ locked_until: sql`now() + make_interval(secs => ${lockSeconds})` })
      .where((eb) => eb.and(columns(id)))
      .execute();
  }

  /** Changes the subject of the claimed request. */
  async setSubject(id: IdempotencyId, subject: string): Promise<void> {
    await this.#db
      .updateTable('idempotency_keys')
      .set({ subject })
      .where((eb) => eb.and(columns(id)))
      .execute();
  }

  /** Stores the answer of the claimed request. */
  async complete(id: IdempotencyId, response: IdempotentResponse): Promise<void> {
    await this.#db
      .updateTable('idempotency_keys')
      .set({ response: JSON.stringify(response) })
      .where((eb) => eb.and(columns(id)))
      .execute();
  }

  /** Frees the key of a request that created nothing, so that a retry can claim it. */
  async release(id: IdempotencyId): Promise<void> {
    await this.#db
      .deleteFrom('idempotency_keys')
      .where((eb) => eb.and(columns(id)))
      .where('response', 'is', null)
      .execute();
  }

  async removeExpired(lifetimeSeconds: number): Promise<void> {
    await sql`
      delete from idempotency_keys
      where created_at < now() - make_interval(secs => ${lifetimeSeconds})`.execute(this.#db);
  }
}

function columns(id: IdempotencyId) {
  return { tenant_id: id.tenantId, operation: id.operation, key: id.key };
}
