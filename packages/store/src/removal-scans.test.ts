import { Kysely, PostgresDialect, sql } from 'kysely';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { insertTenants } from '../test/insert-tenants.ts';
import { startTestPostgres, type TestPostgres } from '../test/test-postgres.ts';
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

/** What `remove` returns, and how often it, with the checks of foreign keys, read a whole table. */
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
