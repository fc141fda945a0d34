import { type Kysely, sql } from 'kysely';
import type { Schema, WorkspaceEntryKind } from '../../schema.ts';
import { packedExtents, unpackExtents } from './extents.ts';
import type { WorkspaceEntry, WorkspaceFile } from './scope.ts';

export interface EntryPage {
  /** Lists paths after this one. */
  readonly after: Buffer;
  readonly limit: number;
  /** The page ends with the entry that reaches this number of extents. */
  readonly extents: number;
}

interface EntryColumns {
  readonly path: Buffer;
  readonly kind: WorkspaceEntryKind;
  readonly mode: number;
  readonly mtime_ms: string;
  readonly size_bytes: string;
  readonly target: Buffer | null;
  readonly content_id: string | null;
  readonly version: string;
  readonly packed: Buffer | null;
  readonly is_last: boolean;
}

/** A page of entries in the order of their paths' bytes, and whether it is the last one. */
export async function listEntries(
  db: Kysely<Schema>,
  workspaceId: string,
  { after, limit, extents }: EntryPage,
): Promise<{ entries: WorkspaceEntry[]; isLast: boolean }> {
  const { rows } = await sql<EntryColumns>`
    with page as (
      select *, sum(extents) over (order by path) - extents as extents_before,
        row_number() over (order by path) as number
      from (select * from workspace_files where workspace_id = ${workspaceId} and path > ${after}
        order by path limit ${limit + 1}) as found)
    select path, kind, mode, size_bytes, target, content_id, version,
      coalesce(mtime_ms, (extract(epoch from modified_at) * 1000)::bigint) as mtime_ms,
      ${packedExtents(sql`page.content_id`)} as packed,
      number = (select max(number) from page) as is_last
    from page where number <= ${limit} and extents_before < ${extents}
    order by path`.execute(db);
  return { entries: rows.map(entryOf), isLast: rows.at(-1)?.is_last ?? true };
}

/** Which of these paths are files whose content is an object. */
export async function findObjects(
  db: Kysely<Schema>,
  workspaceId: string,
  paths: readonly Buffer[],
): Promise<(Pick<WorkspaceFile, 'path' | 'sizeBytes' | 'version'> & { objectKey: string })[]> {
  const { rows } = await sql<{
    path: Buffer;
    size_bytes: string;
    version: string;
    object_key: string;
  }>`
    select path, size_bytes, version, object_key from workspace_files
    where workspace_id = ${workspaceId} and path = any(${paths}::bytea[])
      and object_key is not null`.execute(db);
  return rows.map((row) => ({
    path: row.path,
    sizeBytes: Number(row.size_bytes),
    version: Number(row.version),
    objectKey: row.object_key,
  }));
}

function entryOf(row: EntryColumns): WorkspaceEntry {
  return {
    path: row.path,
    kind: row.kind,
    mode: row.mode,
    mtimeMs: Number(row.mtime_ms),
    sizeBytes: Number(row.size_bytes),
    target: row.target ?? undefined,
    extents: row.content_id === null ? undefined : unpackExtents(row.packed),
    version: Number(row.version),
  };
}
