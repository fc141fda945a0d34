import { LIMITS } from '@svc/contract';
import { type Kysely, sql } from 'kysely';
import type { Schema } from '../../schema.ts';

/** Whoever numbers the frames of one start of a session. */
export interface Numberer {
  readonly sessionId: string;
  readonly generation: number;
  /** A UUID. */
  readonly numberedBy: string;
}

/** The numbers above `baseSeq`, up to and including `reservedSeq`. */
export interface ReservedNumbers {
  readonly baseSeq: number;
  readonly reservedSeq: number;
}

/**
 * Reserves a first block above every number that was ever reserved, and from now on refuses every other numberer. Gives
 * the same block when repeated. Undefined when the session has another generation.
 */
export async function beginNumbering(
  db: Kysely<Schema>,
  { sessionId, generation, numberedBy }: Numberer,
): Promise<ReservedNumbers | undefined> {
  const { rows } = await sql<Row>`
    update sessions set numbered_by = ${numberedBy},
      base_seq = case when numbered_by = ${numberedBy} then base_seq
        else greatest(last_seq, reserved_seq) end,
      reserved_seq = case when numbered_by = ${numberedBy} then reserved_seq
        else greatest(last_seq, reserved_seq) + ${LIMITS.frameNumbersBlock} end
    where session_id = ${sessionId} and generation = ${generation}
    returning base_seq, reserved_seq`.execute(db);
  return reservedIn(rows);
}

/**
 * Extends the reservation to a whole block above `after`, a number that the numberer may use. Undefined when the session
 * has another generation or another numberer.
 */
export async function extendNumbering(
  db: Kysely<Schema>,
  { sessionId, generation, numberedBy }: Numberer,
  after: number,
): Promise<ReservedNumbers | undefined> {
  const { rows } = await sql<Row>`
    update sessions set numbered_by = ${numberedBy},
      reserved_seq = greatest(reserved_seq, ${after}::bigint + ${LIMITS.frameNumbersBlock})
    where session_id = ${sessionId} and generation = ${generation}
      -- Null: an older version of the worker started it.
      and coalesce(numbered_by, ${numberedBy}) = ${numberedBy}
    returning base_seq, reserved_seq`.execute(db);
  return reservedIn(rows);
}

interface Row {
  readonly base_seq: string;
  readonly reserved_seq: string;
}

function reservedIn([row]: readonly Row[]): ReservedNumbers | undefined {
  return row && { baseSeq: Number(row.base_seq), reservedSeq: Number(row.reserved_seq) };
}
