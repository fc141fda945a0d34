import type { AuditEvent } from '@svc/contract';
import { type Kysely, sql } from 'kysely';
import { lockName } from '../advisory-lock.ts';
import { ago, removeBatch } from '../remove-batch.ts';
import type { AuditRow, Schema } from '../schema.ts';

/** A tenant's records within an hour, beyond which events of one kind are counted in one record. */
const MOST_PER_HOUR = 1_000;

/** An event to record. */
export interface AuditRecord {
  readonly event: AuditEvent;
  readonly tenantId?: string | undefined;
  /** Must not contain secrets. */
  readonly details?: Readonly<Record<string, unknown>>;
}

/** A page of a tenant's records. */
export interface AuditPage {
  readonly limit: number;
  /** The id of a record. Only older records are listed. */
  readonly before?: string | undefined;
}

/** The audit trail. Records are added, and removed only when they are older than they have to be. Only counts change. */
export class AuditRepository {
  readonly #db: Kysely<Schema>;

  constructor(db: Kysely<Schema>) {
    this.#db = db;
  }

  /** Records an event. Of a tenant that has a thousand records within the hour, only the number is recorded. */
  async append({ event, tenantId, details = {} }: AuditRecord): Promise<void> {
    if (tenantId !== undefined && (await this.#hasMany(tenantId))) {
      await this.#count(event, tenantId, { counted_only: true });
      return;
    }
    await this.#db
      .insertInto('audit_records')
      .values({ event, tenant_id: tenantId ?? null, details: JSON.stringify(details) })
      .execute();
  }

  /**
   * Records an event that somebody can repeat at will. Repetitions with the same `facts` within an hour of the first are
   * counted in its record, as `count` in the details, of which the facts become a part.
   */
  async appendRepeated(
    { event, tenantId, details }: AuditRecord,
    facts: Readonly<Record<string, unknown>>,
  ): Promise<void> {
    await this.#count(event, tenantId ?? null, facts, details);
  }

  async #hasMany(tenantId: string): Promise<boolean> {
    const { rows } = await sql<{ many: boolean }>`
      select created_at > now() - interval '1 hour' as many from audit_records
      where tenant_id = ${tenantId} order by id desc limit 1 offset ${MOST_PER_HOUR - 1}`.execute(
      this.#db,
    );
    return rows.some(({ many }) => many);
  }

  /** Counts an event in the record of the last hour that has these facts, or adds one with them and the details. */
  async #count(
    event: AuditEvent,
    tenant: string | null,
    facts: Readonly<Record<string, unknown>>,
    details: AuditRecord['details'] = {},
  ): Promise<void> {
    const same = JSON.stringify(facts);
    const group = JSON.stringify([event, tenant, facts]);
    await this.#db.transaction().execute(async (transaction) => {
      await lockName(transaction, group);
      const { numAffectedRows } = await sql`
        update audit_records
        set details = details || jsonb_build_object('count', (details->>'count')::int + 1)
        where id = (
          select max(id) from audit_records
          where tenant_id is not distinct from ${tenant} and created_at > now() - interval '1 hour'
            and event = ${event} and details @> ${same}::jsonb)`.execute(transaction);
      if (numAffectedRows === 1n) return;
      const first = JSON.stringify({ ...details, ...facts, count: 1 });
      await sql`
        insert into audit_records (event, tenant_id, details)
        values (${event}, ${tenant}, ${first})`.execute(transaction);
    });
  }

  /** Records of one tenant, newest first. */
  async list(tenantId: string, { limit, before }: AuditPage): Promise<AuditRow[]> {
    let query = this.#db
      .selectFrom('audit_records')
      .selectAll()
      .where('tenant_id', '=', tenantId)
      .orderBy('id', 'desc')
      .limit(limit);
    if (before !== undefined) query = query.where('id', '<', before);
    return query.execute();
  }

  /** Removes up to `limit` records that are older than this. Returns their number. */
  removeOlder(seconds: number, limit: number): Promise<number> {
    return removeBatch(this.#db, 'audit_records', sql`created_at < ${ago(seconds)}`, limit);
  }
}
