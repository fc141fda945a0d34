import { type Kysely, sql } from 'kysely';
import { ago, removeBatch } from '../remove-batch.ts';
import type { OtpSubjectKind, Schema } from '../schema.ts';

/** A request for a code, or a try of one, and the number of requests allowed per hour. */
export interface OtpRequest {
  readonly kind: OtpSubjectKind;
  readonly subject: string;
  readonly maxPerHour: number;
}

/** One-time codes, one per e-mail address, and the counters of requests for them. */
export class OtpRepository {
  readonly #db: Kysely<Schema>;

  constructor(db: Kysely<Schema>) {
    this.#db = db;
  }

  /**
   * Counts a request, unless the number for the last hour has been reached.
   * Returns 0 when it was counted, otherwise the seconds until the next request is allowed.
   */
  async countRequest(request: OtpRequest): Promise<number> {
    const recent = sql`array(select hit from unnest(counter.hits) hit where hit > now() - interval '1 hour')`;
    const counted = await sql`
      insert into otp_requests as counter (kind, subject, hits)
      values (${request.kind}, ${request.subject}, array[now()])
      on conflict (kind, subject) do update set hits = ${recent} || now()
      where cardinality(${recent}) < ${request.maxPerHour}
      returning 1`.execute(this.#db);
    return counted.rows.length > 0 ? 0 : this.#secondsUntilFree(request);
  }

  /** Takes back the latest request that was counted. */
  async uncountRequest({ kind, subject }: Pick<OtpRequest, 'kind' | 'subject'>): Promise<void> {
    await sql`
      update otp_requests set hits = trim_array(hits, 1)
      where kind = ${kind} and subject = ${subject} and cardinality(hits) > 0`.execute(this.#db);
  }

  async #secondsUntilFree(request: OtpRequest): Promise<number> {
    const { rows } = await sql<{ seconds: number }>`
      select ceil(extract(epoch from min(hit) + interval '1 hour' - now()))::int as seconds
      from otp_requests, unnest(hits) hit
      where kind = ${request.kind} and subject = ${request.subject}
        and hit > now() - interval '1 hour'`.execute(this.#db);
    return Math.max(1, rows[0]?.seconds ?? 1);
  }

  /** Stores a code for this address and replaces any earlier one. */
  async put(email: string, codeHash: Buffer, lifetimeSeconds: number): Promise<void> {
    await sql`
      insert into otp_codes (email, code_hash, expires_at)
      values (${email}, ${codeHash}, now() + make_interval(secs => ${lifetimeSeconds}))
      on conflict (email) do update
      set code_hash = excluded.code_hash, expires_at = excluded.expires_at,
          attempts = 0, created_at = now()`.execute(this.#db);
  }

  /** Uses one try of this address's code and returns its hash. Undefined when no try is left. */
  async takeTry(email: string, maxTries: number): Promise<Buffer | undefined> {
    const row = await this.#db
      .updateTable('otp_codes')
      .set((eb) => ({ attempts: eb('attempts', '+', 1) }))
      .where('email', '=', email)
      .where('attempts', '<', maxTries)
      .where('expires_at', '>', sql<Date>`now()`)
      .returning('code_hash')
      .executeTakeFirst();
    return row?.code_hash;
  }

  /** Uses up the code. True for exactly one caller. */
  async consume(email: string, codeHash: Buffer): Promise<boolean> {
    const result = await this.#db
      .deleteFrom('otp_codes')
      .where('email', '=', email)
      .where('code_hash', '=', codeHash)
      .executeTakeFirst();
    return result.numDeletedRows === 1n;
  }

  /** Removes up to `limit` codes that have expired longer ago than this. Returns their number. */
  removeExpired(olderThanSeconds: number, limit: number): Promise<number> {
    return removeBatch(this.#db, 'otp_codes', sql`expires_at < ${ago(olderThanSeconds)}`, limit);
  }

  /** Removes up to `limit` counters without a request for this long. Returns their number. */
  removeCounters(olderThanSeconds: number, limit: number): Promise<number> {
    const isIdle = sql`not exists (select from unnest(hits) hit where hit > ${ago(olderThanSeconds)})`;
    return removeBatch(this.#db, 'otp_requests', isIdle, limit);
  }
}
