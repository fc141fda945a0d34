import { LIMITS } from '@svc/contract';
import { type Kysely, sql, type Transaction } from 'kysely';
import { ago, removeBatch } from '../../remove-batch.ts';
import type { Schema } from '../../schema.ts';
import { VISIBLE } from '../sandboxes/lookup.ts';
import { putRange, removeParts, trimParts } from './parts.ts';

/** The end of an agent's log. */
export interface LogTailBytes {
  /** At most `LIMITS.logBytesMax`. */
  readonly bytes: Buffer;
  /** The length of the whole log. */
  readonly totalBytes: number;
}

/** A stored log. */
export interface StoredLog extends LogTailBytes {
  /** Whether its worker sent it when it could grow no more. Otherwise it is what customers were shown. */
  readonly isFinal: boolean;
}

/** Which part of a log is stored. */
export interface LogExtent {
  /** Position of the first stored byte. */
  readonly firstByte: number;
  /** The length of the log, up to which it is stored. */
  readonly totalBytes: number;
  readonly isFinal: boolean;
}

/**
 * - `kept`: everything that was shown is stored, if it is among the last bytes that any request can ask for
 * - `apart`: bytes between it and what is stored are missing; read the log again, with those
 * - `gone`: the sandbox has no record any more, or what its session keeps was erased
 */
export type ShownOutcome = 'kept' | 'apart' | 'gone';

/**
 * The logs of agents: what customers were shown, and the whole end once the agent has exited or its sandbox has ended.
 * Kept as long as the record of the sandbox. Stored bytes have no gaps.
 */
export class AgentLogRepository {
  readonly #db: Kysely<Schema>;

  constructor(db: Kysely<Schema>) {
    this.#db = db;
  }

  /**
   * Stores a log that can grow no more, in place of what is stored. False unless the sandbox has an agent, a record, and
   * this worker, or if what its session keeps has been erased.
   */
  async put(workerId: string, vmId: string, log: LogTailBytes): Promise<boolean> {
    return this.#db.transaction().execute(async (transaction) => {
      if (!(await canKeep(transaction, vmId, workerId))) return false;
      await openLog(transaction, vmId);
      await replace(transaction, vmId, log, true);
      return true;
    });
  }

  /**
   * Stores what a customer is about to be shown. `known` is what was stored before the log was read: a log that is
   * shorter by then has been cut off, and replaces what is stored.
   */
  async addShown(
    vmId: string,
    log: LogTailBytes,
    known: LogExtent | undefined,
  ): Promise<ShownOutcome> {
    return this.#db.transaction().execute(async (transaction) => {
      if (!(await canKeep(transaction, vmId))) return 'gone';
      const stored = await openLog(transaction, vmId);
      const isCutOff = known?.totalBytes === stored?.totalBytes && isShorter(log, known);
      if (stored === undefined || isCutOff) {
        await replace(transaction, vmId, log, false);
        return 'kept';
      }
      return extend(transaction, vmId, log, stored);
    });
  }

  /** Which part of a sandbox's log is stored. */
  async extent(vmId: string): Promise<LogExtent | undefined> {
    const row = await this.#db
      .selectFrom('agent_logs')
      .selectAll()
      .where('vm_id', '=', vmId)
      .executeTakeFirst();
    return row && extentOf(row);
  }

  /** The stored end of a sandbox's log. */
  async find(vmId: string): Promise<StoredLog | undefined> {
    const { rows } = await sql<{ total_bytes: string; is_final: boolean; bytes: Buffer | null }>`
      select total_bytes, is_final,
        (select string_agg(bytes, ''::bytea order by part) from agent_log_parts
          where agent_log_parts.vm_id = agent_logs.vm_id) as bytes
      from agent_logs where vm_id = ${vmId}`.execute(this.#db);
    const [row] = rows;
    if (row === undefined) return undefined;
    const bytes = (row.bytes ?? Buffer.alloc(0)).subarray(-LIMITS.logBytesMax);
    return { bytes, totalBytes: Number(row.total_bytes), isFinal: row.is_final };
  }

  /** Removes up to `limit` logs of sandboxes that ended longer ago than this. Returns their number. */
  removeExpired(olderThanSeconds: number, limit: number): Promise<number> {
    const isExpired = sql`exists (select from sandboxes where sandboxes.vm_id = agent_logs.vm_id
      and sandboxes.ended_at < ${ago(olderThanSeconds)})`;
    return removeBatch(this.#db, 'agent_logs', isExpired, limit);
  }
}

/** Whether the log of a sandbox may be kept. An erasure of its session in progress is waited for; a later one waits. */
async function canKeep(
  transaction: Transaction<Schema>,
  vmId: string,
  workerId?: string,
): Promise<boolean> {
  const isOnWorker = workerId === undefined ? sql`true` : sql`worker_id = ${workerId}`;
  const { rows } = await sql<{ session_id: string | null }>`
    select session_id from sandboxes
    where vm_id = ${vmId} and ${isOnWorker} and agent is not null and ${VISIBLE}`.execute(
    transaction,
  );
  if (rows[0] === undefined) return false;
  const { session_id: sessionId } = rows[0];
  if (sessionId === null) return true;
  const session = await sql<{ erased: boolean }>`
    select erased_at is not null as erased from sessions
    where session_id = ${sessionId} for share`.execute(transaction);
  return session.rows[0]?.erased !== true;
}

/** Makes other changes of a log wait until the transaction ends. Undefined if nothing of it was stored. */
async function openLog(
  transaction: Transaction<Schema>,
  vmId: string,
): Promise<LogExtent | undefined> {
  const inserted = await sql`
    insert into agent_logs (vm_id, first_byte, total_bytes, is_final)
    values (${vmId}, 0, 0, false) on conflict do nothing`.execute(transaction);
  if (inserted.numAffectedRows === 1n) return undefined;
  const row = await transaction
    .selectFrom('agent_logs')
    .selectAll()
    .where('vm_id', '=', vmId)
    .forNoKeyUpdate()
    .executeTakeFirst();
  return row && extentOf(row);
}

/** Whether a log has got shorter than its stored part. */
function isShorter(log: LogTailBytes, known: LogExtent | undefined): boolean {
  return known !== undefined && log.totalBytes < known.totalBytes;
}

async function replace(
  transaction: Transaction<Schema>,
  vmId: string,
  { bytes, totalBytes }: LogTailBytes,
  isFinal: boolean,
): Promise<void> {
  const firstByte = totalBytes - bytes.length;
  await removeParts(transaction, vmId);
  await putRange(transaction, vmId, { first: firstByte, bytes });
  await setExtent(transaction, vmId, { firstByte, totalBytes, isFinal });
}

/** Adds to a stored log what it lacks. */
async function extend(
  transaction: Transaction<Schema>,
  vmId: string,
  log: LogTailBytes,
  stored: LogExtent,
): Promise<ShownOutcome> {
  const { bytes, totalBytes } = log;
  const first = totalBytes - bytes.length;
  if (first > stored.totalBytes) {
    if (bytes.length < LIMITS.logBytesMax) return 'apart';
    await replace(transaction, vmId, log, false);
    return 'kept';
  }
  if (totalBytes < stored.firstByte) {
    return stored.totalBytes - stored.firstByte < LIMITS.logBytesMax ? 'apart' : 'kept';
  }
  const earlier = Math.max(0, stored.firstByte - first);
  const later = Math.max(0, totalBytes - stored.totalBytes);
  if (earlier + later === 0) return 'kept';
  if (earlier > 0) {
    await putRange(transaction, vmId, { first, bytes: bytes.subarray(0, earlier) });
  }
  if (later > 0) {
    const added = bytes.subarray(bytes.length - later);
    await putRange(transaction, vmId, { first: stored.totalBytes, bytes: added });
  }
  const total = Math.max(totalBytes, stored.totalBytes);
  const oldest = await trimParts(transaction, vmId, total);
  await setExtent(transaction, vmId, {
    firstByte: Math.max(Math.min(first, stored.firstByte), oldest),
    totalBytes: total,
    isFinal: stored.isFinal && later === 0,
  });
  return 'kept';
}

async function setExtent(
  transaction: Transaction<Schema>,
  vmId: string,
  { firstByte, totalBytes, isFinal }: LogExtent,
): Promise<void> {
  await transaction
    .updateTable('agent_logs')
    .set({ first_byte: firstByte, total_bytes: totalBytes, is_final: isFinal })
    .where('vm_id', '=', vmId)
    .execute();
}

function extentOf(row: {
  readonly first_byte: string;
  readonly total_bytes: string;
  readonly is_final: boolean;
}): LogExtent {
  const { first_byte, total_bytes, is_final } = row;
  return { firstByte: Number(first_byte), totalBytes: Number(total_bytes), isFinal: is_final };
}
