import { Kysely, PostgresDialect, sql } from 'kysely';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { insertTenants } from '../test/insert-tenants.ts';
import { startTestPostgres, type TestPostgres } from '../test/test-postgres.ts';
import { ChunkRepository, SESSION_CHUNKS } from './repositories/chunks/chunk-repository.ts';
import { WorkerRepository } from './repositories/workers.ts';
import { WorkspaceRepository } from './repositories/workspaces/workspace-repository.ts';
import type { Schema } from './schema.ts';

const DAY = 86_400;

let postgres: TestPostgres;
/** One connection, so that it can publish its own statistics. */
let db: Kysely<Schema>;
const run = (text: string) => sql.raw(text).execute(db);

beforeAll(async () => {
  postgres = await startTestPostgres();
  db = new Kysely<Schema>({
    dialect: new PostgresDialect({ pool: new pg.Pool({ connectionString: postgres.url, max: 1 }) }),
  });
  await insertTenants(db, 't');
});
afterAll(async () => {
  await db?.destroy();
  await postgres?.[Symbol.asyncDispose]();
});

/** What `remove` returns, and how often it, with the checks of foreign keys, reads a whole table. */
async function scans(
  tables: readonly string[],
  remove: () => Promise<number>,
): Promise<{ readonly removed: number; readonly scans: number }> {
  const count = async () => {
    await run('select pg_stat_force_next_flush()');
    const { rows } = await sql<{ scans: number }>`
      select sum(seq_scan)::int as scans from pg_stat_user_tables
      where relname = any(${tables}::text[])`.execute(db);
    return rows[0]?.scans ?? 0;
  };
  const before = await count();
  const removed = await remove();
  return { removed, scans: (await count()) - before };
}

test('silent workers are removed without a scan of all sandboxes', async () => {
  await run(`insert into workers
      (worker_id, url, certificate, version, vcpu, memory_mib, disk_mib, templates, heartbeat_at)
    select 'w' || n, '', '', '', 1, 1, 1, '[]', now() - make_interval(days => case when n > 980 then 100 else 0 end)
    from generate_series(1, 1000) as n`);
  // Of the workers that are silent, half have a record of a sandbox.
  await run(`insert into sandboxes (vm_id, tenant_id, worker_id, state, template, memory_mib, agent,
      idle_timeout_seconds, max_lifetime_seconds, ended_at, end_reason)
    select 'vm_' || n, 't', 'w' || (1 + n % 990), 'destroyed', 'standard', 1, 'deictic', 1, 1, now(), 'deleted'
    from generate_series(1, 20000) as n`);
  await run('analyze workers, sandboxes');
  const workers = new WorkerRepository(db, db);
  const found = await scans(['sandboxes'], () => workers.removeSilent(90 * DAY, 500));
  expect(found).toEqual({ removed: 10, scans: 0 });
});

test('flushes and empty workspaces are removed without a scan of all flushes and uploads', async () => {
  await run(`insert into workspaces (tenant_id, app_id, capset_id, used_at)
    select 't', 'a' || n, 'c', now() - make_interval(days => case when n > 1980 then 8 else 0 end)
    from generate_series(1, 2000) as n`);
  // None in those that are empty.
  await run(`insert into workspace_flushes (flush_id, workspace_id, vm_id, state, touched_at)
    select gen_random_uuid(), workspace_id, 'vm', state, now() - make_interval(days => case when n > 19 then 2 else 0 end)
    from generate_series(1, 20) as n, unnest(array['closed', 'committed']) as state, workspaces
    where used_at > now() - interval '1 day' and (n < 20 or app_id like 'a1__')`);
  await run(`insert into workspace_uploads (upload_id, workspace_id, path, expires_at, taken_at)
    select gen_random_uuid(), workspace_id, 'p', now(), now()
    from generate_series(1, 4), workspaces where used_at > now() - interval '1 day'`);
  await run('analyze workspaces, workspace_flushes, workspace_uploads');
  const workspaces = new WorkspaceRepository(db);
  const tables = ['workspace_flushes', 'workspace_uploads'];
  expect(await scans(tables, () => workspaces.removeFinishedFlushes(DAY, 500))).toEqual({
    removed: 200,
    scans: 0,
  });
  expect(await scans(tables, () => workspaces.removeAbandonedFlushes(3600, 20))).toEqual({
    removed: 0,
    scans: 0,
  });
  expect(await scans(tables, () => workspaces.removeEmpty(7 * DAY, 20))).toEqual({
    removed: 20,
    scans: 0,
  });
});

test('chunks are compared with a listing of objects without a scan of all chunks', async () => {
  await run(`insert into sessions (session_id, tenant_id, status, vm_id, agent, app_id, set_id, template, vendor,
      model, secrets, user_id, expires_at)
    select gen_random_uuid(), 't', 'active', 'v', 'deictic', 'a', 's', 'standard', 'openai', 'm', '{}', 'u', now()
    from generate_series(1, 20)`);
  await run(`insert into session_chunks (session_id, chunk_id, object_key, stored_bytes, stored_at)
    select session_id, sha256((session_id || '/' || n)::bytea), 'sessions/' || session_id || '/' || n, 1,
      now() - interval '1 day'
    from sessions, generate_series(1, 1000) as n`);
  await run('analyze session_chunks');
  const { rows } = await sql<{ key: string }>`
    select object_key as key from session_chunks order by object_key collate "C" limit 1000`.execute(
    db,
  );
  const listed = rows.map(({ key }) => key);
  const [after = '', ...others] = listed;
  const range = { after, last: others.at(-1) ?? '' };
  const chunks = new ChunkRepository(db, SESSION_CHUNKS);
  const unlisted = async () => {
    const found = await chunks.unlisted(range, others.slice(3), DAY / 2, 1_000);
    expect(found).toEqual(others.slice(0, 3));
    return found.length;
  };
  expect(await scans(['session_chunks'], unlisted)).toEqual({ removed: 3, scans: 0 });
  const note = () => chunks.noteLost(others.slice(0, 3), DAY / 2);
  expect(await scans(['session_chunks'], note)).toEqual({ removed: 3, scans: 0 });
  const noteFound = async () => {
    await chunks.noteFound(listed);
    return unlisted();
  };
  expect(await scans(['session_chunks'], noteFound)).toEqual({ removed: 3, scans: 0 });
});
