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

/** The audit trail. Records are added, and removed only when they are older than they have to be. */
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
