import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { lockFile } from '@svc/service-kit/process';
import { EmbeddedPostgres } from '@svc/store';
import pg from 'pg';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { commandLine } from '../../test/run-svc.ts';
import { backUpDatabase } from '../service/backups.ts';
import { servicePaths } from '../service/paths.ts';
import { restoreCommand } from './backup.ts';

let root: string;
let dataDirectory: string;
let server: EmbeddedPostgres | undefined;

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'svc-cli-backup-'));
  // For the account of the server.
  await chmod(root, 0o755);
  dataDirectory = join(root, 'data');
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await server?.close();
  server = undefined;
  await rm(root, { recursive: true, force: true });
});

async function query<Row extends pg.QueryResultRow>(text: string): Promise<Row[]> {
  const client = new pg.Client({ connectionString: server?.url ?? '' });
  await client.connect();
  try {
    return (await client.query<Row>(text)).rows;
  } finally {
    await client.end();
  }
}

test('svc backup and svc restore --to bring back what was deleted', async () => {
  const backupDirectory = join(root, 'backups');
  const svc = commandLine({
    HOME: root,
    SVC_DATA_DIR: dataDirectory,
    SVC_BACKUP_DIR: backupDirectory,
  });
  server = await EmbeddedPostgres.start({ dataDirectory, backupDirectory });
  await query('create table turns as select 1 as turn');
  const lock = await lockFile(servicePaths(dataDirectory).lock);
  expect(await svc(['backup', '--keep', '2'])).toMatchObject({
    code: 0,
    output: expect.stringMatching(/^made the backup 20\S+; `svc restore` restores it/),
    errors: '',
  });
  await query('insert into turns values (2)');
  const [row] = await query<{ now: Date }>(`select clock_timestamp() + '1 ms' as now`);
  const to = row?.now.toISOString() ?? '';
  await expect
    .poll(() => query(`select where clock_timestamp() > '${to}'::timestamptz + '5 ms'`))
    .toHaveLength(1);
  await query('delete from turns');
  expect(await svc(['restore', '--to', to])).toMatchObject({
    code: 1,
    errors: expect.stringContaining('service_running'),
  });
  await server.close();
  await lock.release();
  const restored = await svc(['restore', '--to', to]);
  expect(restored.code, restored.errors).toBe(0);
  expect(restored.output).toMatch(/^restored the database with the backup 20\S+\n/);
  expect(restored.output).toContain(
    `the database before is in ${dataDirectory}/postgres.replaced-`,
  );
  server = await EmbeddedPostgres.start({ dataDirectory });
  expect(await query('select turn from turns')).toEqual([{ turn: 1 }, { turn: 2 }]);
});

test('without SVC_BACKUP_DIR there are no backups, and a time needs a zone', async () => {
  vi.stubEnv('SVC_DATA_DIR', dataDirectory);
  vi.stubEnv('SVC_BACKUP_DIR', undefined);
  await expect(backUpDatabase(1)).rejects.toMatchObject({ code: 'no_backups' });
  vi.stubEnv('SVC_DATABASE_URL', 'postgres://localhost/svc');
  vi.stubEnv('SVC_BACKUP_DIR', root);
  await expect(backUpDatabase(1)).rejects.toMatchObject({
    code: 'no_backups',
    message: 'the database is not the embedded one',
  });
  const command = restoreCommand()
    .exitOverride()
    .configureOutput({ writeErr: () => undefined });
  await expect(
    command.parseAsync(['--to', '2026-11-24T09:30:00'], { from: 'user' }),
  ).rejects.toThrow(/Not a time with a zone/);
});
