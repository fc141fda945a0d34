import type { AuditEvent } from '@svc/contract';
import type { Kysely } from 'kysely';
import type { AuditRow, Schema } from '../schema.ts';

/** Something that happened and must stay on record. */
export interface AuditRecord {
  readonly event: AuditEvent;
  readonly tenantId?: string | undefined;
  /** Facts worth keeping; never a secret. */
  readonly details?: Readonly<Record<string, unknown>>;
}

/** A page of a tenant's records. */
export interface AuditPage {
  readonly limit: number;
  /** Only records older than this one. */
  readonly before?: string | undefined;
}

/** The audit trail. It only grows. */
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
}
