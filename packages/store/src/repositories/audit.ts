import type { Kysely } from 'kysely';
import type { Schema } from '../schema.ts';

/** Something that happened and must stay on record. */
export interface AuditRecord {
  readonly event: AuditEvent;
  readonly tenantId?: string;
  /** Facts worth keeping; never a secret. */
  readonly details?: Record<string, unknown>;
}

export type AuditEvent = 'login_succeeded' | 'login_failed' | 'api_key_created';

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
}
