import { LIMITS } from '@svc/contract';
import { type Kysely, sql } from 'kysely';
import type { Schema } from '../../schema.ts';

/** Bytes that are written again when a log grows: a part is a row. Stored parts depend on it. */
const PART_BYTES = 65_536;

/** A piece of a log. */
export interface LogRange {
  /** Position of its first byte in the log. */
  readonly first: number;
  readonly bytes: Buffer;
}

/**
 * Stores a piece of a log in the parts that it touches. What they contain already stays around it, so it must not leave
 * a gap to that.
 */
export async function putRange(db: Kysely<Schema>, vmId: string, range: LogRange): Promise<void> {
  const parts = [...partsOf(range)];
  await sql`
    insert into agent_log_parts as part (vm_id, part, first_byte, bytes)
    select ${vmId}, new.part, new.first_byte, new.bytes
    from unnest(${parts.map(({ part }) => part)}::bigint[], ${parts.map(({ first }) => first)}::bigint[],
      ${parts.map(({ bytes }) => bytes)}::bytea[]) as new (part, first_byte, bytes)
    on conflict (vm_id, part) do update set
      first_byte = least(part.first_byte, excluded.first_byte),
      bytes = substring(part.bytes for greatest(excluded.first_byte - part.first_byte, 0)::int)
        || excluded.bytes
        || substring(part.bytes from
          (excluded.first_byte + octet_length(excluded.bytes) - part.first_byte)::int + 1)`.execute(
    db,
  );
}

/** Removes parts that begin before the last bytes of a log that any request can ask for. Returns where the rest begins. */
export async function trimParts(
  db: Kysely<Schema>,
  vmId: string,
  totalBytes: number,
): Promise<number> {
  const first = Math.floor(Math.max(0, totalBytes - LIMITS.logBytesMax) / PART_BYTES);
  await sql`delete from agent_log_parts where vm_id = ${vmId} and part < ${first}`.execute(db);
  return first * PART_BYTES;
}

/** Removes all parts of a log. */
export async function removeParts(db: Kysely<Schema>, vmId: string): Promise<void> {
  await sql`delete from agent_log_parts where vm_id = ${vmId}`.execute(db);
}

function* partsOf({ first, bytes }: LogRange) {
  for (let at = 0; at < bytes.length; ) {
    const part = Math.floor((first + at) / PART_BYTES);
    const end = (part + 1) * PART_BYTES - first;
    yield { part, first: first + at, bytes: bytes.subarray(at, end) };
    at = end;
  }
}
