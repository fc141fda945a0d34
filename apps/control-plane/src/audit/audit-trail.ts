import type { AuditEntry, AuditQuery, ListAuditResponse } from '@svc/contract';
import { LIMITS } from '@svc/contract';
import { FailureLogs } from '@svc/service-kit/logging';
import type { AuditRecord, AuditRow, Store } from '@svc/store';
import type { FastifyBaseLogger } from 'fastify';
import type { Caller } from '../auth/caller.ts';

/** Records events in the ledger, where their tenant can read them, and in the log. */
export class AuditTrail {
  readonly #store: Store['audit'];
  readonly #logger: FastifyBaseLogger;
  /** By what the records of repeated events have in common. */
  readonly #repeated = new FailureLogs();

  constructor(store: Store['audit'], logger: FastifyBaseLogger) {
    this.#store = store;
    this.#logger = logger;
  }

  /**
   * Records an event. Settles when the ledger has it. `forOperators`: facts that only the log gets, because the tenant
   * must not see them.
   */
  async append(
    record: AuditRecord,
    forOperators: Readonly<Record<string, unknown>> = {},
  ): Promise<void> {
    await this.#store.append(record);
    this.#log(record, forOperators);
  }

  /**
   * Records an event that somebody can repeat at will. Those of an hour that have the same `facts` are one record with their
   * number, so that they cannot crowd out the tenant's others, and one line of the log a minute.
   */
  async appendRepeated(
    record: AuditRecord,
    facts: Readonly<Record<string, unknown>>,
    forOperators: Readonly<Record<string, unknown>> = {},
  ): Promise<void> {
    await this.#store.appendRepeated(record, facts);
    const details = { ...record.details, ...facts };
    const key = JSON.stringify([record.event, record.tenantId, facts, forOperators]);
    this.#repeated.note(key, (omitted) =>
      this.#log({ ...record, details }, { ...forOperators, omitted }),
    );
  }

  /** Records an action of a caller, with the credential that was used. */
  async note(
    caller: Caller,
    event: AuditRecord['event'],
    details: Readonly<Record<string, unknown>>,
  ): Promise<void> {
    const { tenantId, keyId } = caller;
    await this.append({ event, tenantId, details: { ...details, by: keyId ?? 'account' } });
  }

  /** A page of the tenant's records, newest first. */
  async list(tenantId: string, query: AuditQuery): Promise<ListAuditResponse> {
    const limit = query.limit ?? LIMITS.pageDefault;
    // One extra row tells whether there is a next page.
    const rows = await this.#store.list(tenantId, { limit: limit + 1, before: query.cursor });
    const page = rows.slice(0, limit);
    const last = page.at(-1);
    const more = rows.length > limit && last !== undefined;
    return { entries: page.map(entryOf), ...(more ? { next_cursor: last.id } : {}) };
  }

  #log(
    { event, tenantId, details = {} }: AuditRecord,
    forOperators: Readonly<Record<string, unknown>> = {},
  ): void {
    this.#logger.info(
      { audit: event, tenant_id: tenantId, details, ...forOperators },
      `audit: ${event}`,
    );
  }
}

function entryOf(row: AuditRow): AuditEntry {
  return {
    id: row.id,
    event: row.event,
    created_at: row.created_at.toISOString(),
    details: row.details,
  };
}
