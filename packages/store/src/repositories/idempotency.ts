import { type Kysely, sql } from 'kysely';
import type { IdempotentResponse, Schema } from '../schema.ts';

/** Names one keyed request of one tenant. */
export interface IdempotencyId {
  readonly tenantId: string;
  /** The route, such as `sandboxes.create`: the same key on another route is another key. */
  readonly operation: string;
  readonly key: string;
}

/** What a request with a key finds. */
export type IdempotencyClaim =
  | { readonly kind: 'claimed' }
  /** Its first request ended without an answer (a crash); it was making `subject`. */
  | { readonly kind: 'taken_over'; readonly subject: string }
  | { readonly kind: 'running' }
  | { readonly kind: 'done'; readonly response: IdempotentResponse }
  | { readonly kind: 'other_body' };

/** Answers kept so that a repeated request does nothing twice. */
export class IdempotencyRepository {
  readonly #db: Kysely<Schema>;

  constructor(db: Kysely<Schema>) {
    this.#db = db;
  }

  /**
   * Claims the key for `lockSeconds`, or says what became of the request that has it.
   * `subject` names what this request is about to make. Keys older than `lifetimeSeconds` are free.
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
    // Released between the two statements: the caller asks again, as for a running one.
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

  /** Keeps the claim of a request that still runs. */
  async renew(id: IdempotencyId, lockSeconds: number): Promise<void> {
    await this.#db
      .updateTable('idempotency_keys')
      .set({ locked_until: sql`now() + make_interval(secs => ${lockSeconds})` })
      .where((eb) => eb.and(columns(id)))
      .execute();
  }

  /** Says what the claimed request makes from now on. */
  async setSubject(id: IdempotencyId, subject: string): Promise<void> {
    await this.#db
      .updateTable('idempotency_keys')
      .set({ subject })
      .where((eb) => eb.and(columns(id)))
      .execute();
  }

  /** Keeps the answer of the claimed request. */
  async complete(id: IdempotencyId, response: IdempotentResponse): Promise<void> {
    await this.#db
      .updateTable('idempotency_keys')
      .set({ response: JSON.stringify(response) })
      .where((eb) => eb.and(columns(id)))
      .execute();
  }

  /** Frees the key of a request that made nothing, so that a retry may try again. */
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
