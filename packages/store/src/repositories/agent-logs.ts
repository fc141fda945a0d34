import { type Kysely, sql } from 'kysely';
import { ago, removeBatch } from '../remove-batch.ts';
import type { Schema } from '../schema.ts';
import { VISIBLE } from './sandboxes/lookup.ts';

/** The end of an agent's log. */
export interface StoredLog {
  readonly bytes: Buffer;
  /** The length of the whole log. */
  readonly totalBytes: number;
}

/** The logs of agents that have exited or whose sandboxes have ended, kept as long as the record of the sandbox. */
export class AgentLogRepository {
  readonly #db: Kysely<Schema>;

  constructor(db: Kysely<Schema>) {
    this.#db = db;
  }

  /**
   * Stores a log in place of an earlier one. False unless the sandbox has an agent, a record, and this worker, or if
   * what its session keeps has been erased.
   */
  async put(workerId: string, vmId: string, log: StoredLog): Promise<boolean> {
    const { rows } = await sql`
      insert into agent_logs (vm_id, tail, total_bytes)
      select vm_id, ${log.bytes}, ${log.totalBytes} from sandboxes
      where vm_id = ${vmId} and worker_id = ${workerId} and agent is not null and ${VISIBLE}
        and not exists (select from sessions
          where sessions.session_id = sandboxes.session_id and erased_at is not null)
      on conflict (vm_id) do update set tail = excluded.tail, total_bytes = excluded.total_bytes
      returning 1`.execute(this.#db);
    return rows.length === 1;
  }

  /** The log of a sandbox. Undefined when no worker has stored one. */
  async find(vmId: string): Promise<StoredLog | undefined> {
    const row = await this.#db
      .selectFrom('agent_logs')
      .select(['tail', 'total_bytes'])
      .where('vm_id', '=', vmId)
      .executeTakeFirst();
    return row && { bytes: row.tail, totalBytes: Number(row.total_bytes) };
  }

  /** Removes up to `limit` logs of sandboxes that ended longer ago than this. Returns their number. */
  removeExpired(olderThanSeconds: number, limit: number): Promise<number> {
    const isExpired = sql`exists (select from sandboxes where sandboxes.vm_id = agent_logs.vm_id
      and sandboxes.ended_at < ${ago(olderThanSeconds)})`;
    return removeBatch(this.#db, 'agent_logs', isExpired, limit);
  }
}
