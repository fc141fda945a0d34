import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmod,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { lockFile } from '@svc/service-kit/process';
import pg from 'pg';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openFleet } from '../../open-fleet.ts';
import { EmbeddedPostgres } from '../embedded-postgres.ts';
import { backUp } from './back-up.ts';
import { listBaseBackups } from './base-backups.ts';
import { restore } from './restore.ts';
import { UnfinishedRestoreError } from './unfinished-restore.ts';

let root: string;
let dataDirectory: string;
let backups: string;
let server: EmbeddedPostgres | undefined;

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'svc-backup-'));
  dataDirectory = join(root, 'data');
  // A name that is special for the shell, for PostgreSQL and for its configuration.
  backups = join(root, `it's 100%p of "all" $HOME`);
  await mkdir(backups);
  // For the account of the server.
  for (const path of [root, backups]) await chmod(path, 0o755);
});
afterEach(async () => {
  await server?.close();
  server = undefined;
  await rm(root, { recursive: true, force: true });
});

async function start(backupDirectory: string | null = backups): Promise<EmbeddedPostgres> {
  server = await EmbeddedPostgres.start({ dataDirectory, backupDirectory });
  return server;
}

async function stop(): Promise<void> {
  await server?.close();
  server = undefined;
}

async function query<Row extends pg.QueryResultRow>(text: string): Promise<Row[]> {
  const client = new pg.Client({ connectionString: server?.url ?? '' });
  await client.connect();
  try {
    return (await client.query<Row>(text)).rows;
  } finally {
    await client.end();
  }
}

const add = (turn: string) => query(`insert into turns values ('${turn}')`);
const turns = async () =>
  (await query<{ turn: string }>('select turn from turns')).map(({ turn }) => turn);
const makeBackup = (keep = 7) =>
  backUp({ url: server?.url ?? '', cluster: join(dataDirectory, 'postgres'), backups, keep });

async function now(): Promise<Date> {
  const [row] = await query<{ now: Date }>('select clock_timestamp() as now');
  if (row === undefined) throw new Error('no time');
  // Times of commits have microseconds, a `Date` has not.
  return new Date(row.now.getTime() + 1);
}

async function archiveAll(): Promise<void> {
  const [row] = await query<{ name: string }>('select pg_walfile_name(pg_switch_wal()) as name');
  const segments = () => readdir(join(backups, 'wal'));
  await expect
    .poll(async () => (await segments()).some((name) => name >= `${row?.name}.gz`), {
      timeout: 60_000,
    })
    .toBe(true);
}

/** A time between the turns before and those after. */
async function pause(): Promise<Date> {
  const time = await now();
  await expect.poll(async () => (await now()).getTime()).toBeGreaterThan(time.getTime() + 5);
  return time;
}

/** The turn a, a backup, and the turns b, c and d. Returns times between b and c, and between c and d. */
async function makeHistory(): Promise<[Date, Date]> {
  await start();
  await query('create table turns (turn text)');
  await add('a');
  await makeBackup();
  await add('b');
  const afterB = await pause();
  await add('c');
  const afterC = await pause();
  await add('d');
  await archiveAll();
  await stop();
  return [afterB, afterC];
}

test('after the loss of the data directory, what was there at a time is restored, or everything', async () => {
  const [afterB, afterC] = await makeHistory();
  await rm(dataDirectory, { recursive: true });
  const restored = await restore({ dataDirectory, backups, to: afterB });
  expect(restored.replaced).toBeUndefined();
  expect(restored.lastCommitAt?.getTime()).toBeLessThan(afterB.getTime());
  await start();
  expect(await turns()).toEqual(['a', 'b']);
  // The restored server archives, without another backup by the operator.
  await add('e');
  await stop();
  await rm(dataDirectory, { recursive: true });
  await restore({ dataDirectory, backups });
  await start();
  expect(await turns()).toEqual(['a', 'b', 'e']);
  await stop();
  // The first restore was to a time too early.
  await restore({ dataDirectory, backups, to: afterC });
  await start();
  expect(await turns()).toEqual(['a', 'b', 'c']);
});

test('a restore keeps the database that is there, and puts it back after a failure', async () => {
  await makeHistory();
  const future = new Date(Date.now() + 86_400_000);
  await expect(restore({ dataDirectory, backups, to: future })).rejects.toThrow(
    /recovery ended before configured recovery target was reached/,
  );
  const early = new Date('2020-01-01');
  await expect(restore({ dataDirectory, backups, to: early })).rejects.toThrow(
    /^The first backup was complete at /,
  );
  await start();
  expect(await turns()).toEqual(['a', 'b', 'c', 'd']);
  await expect(restore({ dataDirectory, backups })).rejects.toThrow(/still running/);
  await add('e');
  await stop();
  const { replaced } = await restore({ dataDirectory, backups });
  expect(await readFile(join(replaced ?? '', 'PG_VERSION'), 'utf8')).toBe('18\n');
  await start();
  // A server that stops in order archives its last segment.
  expect(await turns()).toEqual(['a', 'b', 'c', 'd', 'e']);
});

test('after a restore that was cut off nothing starts, until the next one has put back what was there', async () => {
  await makeHistory();
  const module = new URL('./restore.ts', import.meta.url).href;
  const options = JSON.stringify({ dataDirectory, backups });
  const code = `import { restore } from ${JSON.stringify(module)}; await restore(${options});`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', code], { stdio: 'inherit' });
  const exited = once(child, 'exit');
  const names = () => readdir(dataDirectory);
  await expect
    .poll(names, { timeout: 60_000, interval: 5 })
    .toEqual(
      expect.arrayContaining([
        'postgres.restoring',
        'postgres',
        expect.stringMatching(/^postgres\.replaced-/),
      ]),
    );
  child.kill('SIGKILL');
  expect(await exited).toEqual([null, 'SIGKILL']);
  await expect(start()).rejects.toThrow(UnfinishedRestoreError);

  const future = new Date(Date.now() + 86_400_000);
  await expect(restore({ dataDirectory, backups, to: future })).rejects.toThrow(
    /recovery ended before configured recovery target was reached/,
  );
  expect((await names()).filter((name) => /restoring|replaced/.test(name))).toEqual([]);
  await start();
  expect(await turns()).toEqual(['a', 'b', 'c', 'd']);
});

test('old backups go, with the log that only they needed', async () => {
  await start();
  await query('create table turns (turn text)');
  await makeBackup();
  await add('a');
  await archiveAll();
  await mkdir(join(backups, 'base', 'broken-off.part'));
  const first = (await readdir(join(backups, 'wal'))).sort()[0];
  const [second, third] = [await makeBackup(2), await makeBackup(2)];
  expect(await listBaseBackups(backups)).toEqual([second, third]);
  expect(await readdir(join(backups, 'base'))).toEqual([second.name, third.name]);
  expect(await readdir(join(backups, 'wal'))).not.toContain(first);
  const lock = await lockFile(join(backups, 'backup.lock'));
  await expect(makeBackup()).rejects.toThrow(/is locked by process/);
  await stop();
  await expect(restore({ dataDirectory, backups })).rejects.toThrow(/is locked by process/);
  await lock.release();
  await restore({ dataDirectory, backups });
  await start();
  expect(await turns()).toEqual(['a']);
});

test('a backup that breaks off leaves no part of a copy on the disk, which the archive needs', async () => {
  await start();
  await mkdir(join(backups, 'base', 'killed.part'));
  const unreadable = join(dataDirectory, 'postgres', 'loop');
  await symlink('loop', unreadable);
  await expect(makeBackup()).rejects.toThrow('ELOOP');
  expect(await readdir(join(backups, 'base'))).toEqual([]);
  await rm(unreadable);
  const cluster = join(dataDirectory, 'postgres');
  const interrupted = { url: server?.url ?? '', cluster, backups, signal: AbortSignal.abort() };
  await expect(backUp(interrupted)).rejects.toThrow('aborted');
  expect(await readdir(join(backups, 'base'))).toEqual([]);
  const { name } = await makeBackup();
  expect(await readdir(join(backups, 'base'))).toEqual([name]);
});

test.each([
  ['nowhere', null],
  ['elsewhere', 'elsewhere'],
])('a server that archives %s cannot be backed up', async (_, directory) => {
  await start(directory === null ? null : join(root, directory));
  await expect(makeBackup()).rejects.toThrow(/set SVC_BACKUP_DIR/);
  await expect(restore({ dataDirectory: join(root, 'other'), backups })).rejects.toThrow(
    'There is no complete backup.',
  );
});

test('an archive that cannot be written is noticed, until it can be', async () => {
  await start();
  await using operator = openFleet(server?.url ?? '');
  await query('create table turns (turn text)');
  const wal = join(backups, 'wal');
  await rename(wal, join(backups, 'away'));
  await writeFile(wal, '');
  await query('select pg_switch_wal()');
  await expect.poll(() => operator.archive.isFailing()).toBe(true);
  await rm(wal);
  await rename(join(backups, 'away'), wal);
  await add('a');
  await archiveAll();
  await expect.poll(() => operator.archive.isFailing()).toBe(false);
});

test('a directory with the backups of another database is refused', async () => {
  await writeFile(join(backups, 'system-identifier'), '1');
  await expect(start()).rejects.toThrow(/has the backups of another database/);
});
