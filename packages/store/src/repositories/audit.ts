import type { AuditEvent } from '@svc/contract';
import { type Kysely, sql } from 'kysely';
import { ago, removeBatch } from '../remove-batch.ts';
import type { AuditRow, Schema } from '../schema.ts';

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

  async append(record: AuditRecord): Promise<void> {
    await this.#db
      .insertInto('audit_records')
      .values({
        event: record.event,
        tenant_id: record.tenantId ?? null,
        details: JSON.stringify(record.details ?? {}),
      })
      .execute();
  }

  /**
   * Records an event that may be repeated many times from one network. Repetitions within an hour of the first are counted
   * in its record, as `count` in the details.
   */
  async appendRepeated({ event, tenantId, details }: AuditRecord, network: string): Promise<void> {
    const tenant = tenantId ?? null;
    const group = JSON.stringify([event, tenant, network]);
    await this.#db.transaction().execute(async (transaction) => {
      await sql`select pg_advisory_xact_lock(hashtextextended(${group}, 0))`.execute(transaction);
      const { numAffectedRows } = await sql`
        update audit_records
        set details = details || jsonb_build_object('count', (details->>'count')::int + 1)
        where id = (
          select max(id) from audit_records
          where tenant_id is not distinct from ${tenant} and created_at > now() - interval '1 hour'
            and event = ${event} and details->>'network' = ${network})`.execute(transaction);
      if (numAffectedRows === 1n) return;
      const first = JSON.stringify({ ...details, network, count: 1 });
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
