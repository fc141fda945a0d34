import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, truncate } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { openStore } from '../store.ts';
import { EmbeddedPostgres, type EmbeddedPostgresEvent } from './embedded-postgres.ts';
import { findPostmaster } from './postmaster.ts';

const PLACEMENT = { unreachableMs: 30_000, sandboxesPerTenant: 1 };

let root: string;
let dataDirectory: string;
let events: EmbeddedPostgresEvent[];

beforeEach(() => {
  events = [];
});

async function createDataDirectory(): Promise<void> {
  root = await mkdtemp(join(tmpdir(), 'svc-pg-'));
  // Only the owner may pass, so the server's account cannot search this path.
  await chmod(root, 0o700);
  dataDirectory = join(root, 'data');
}

async function removeDataDirectory(): Promise<void> {
  await rm(root, { recursive: true, force: true });
}

async function start(): Promise<EmbeddedPostgres> {
  return EmbeddedPostgres.start({ dataDirectory, onEvent: (event) => events.push(event) });
}

async function query(url: string, text: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}

async function failure(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => undefined,
    (error: unknown) => error,
  );
}

const postmaster = () => findPostmaster(join(dataDirectory, 'postgres'));

describe('the first start', () => {
  beforeEach(createDataDirectory);
  afterEach(removeDataDirectory);

  test('starts below a directory that other users cannot search, and leaves no process behind', async () => {
    const server = await start();
    expect(await query(server.url, 'show fsync')).toEqual([{ fsync: 'on' }]);
    expect(await query(server.url, 'show listen_addresses')).toEqual([{ listen_addresses: '' }]);
    await server.close();
    expect(await postmaster()).toBeUndefined();
    expect(await readdir(dataDirectory)).toEqual(['postgres', 'postgres.log']);
  });

  test('starts after an interrupted first start', async () => {
    await mkdir(join(dataDirectory, 'postgres.new-1', 'base'), { recursive: true });
    const server = await start();
    await server.close();
    expect(await readdir(dataDirectory)).toEqual(['postgres', 'postgres.log']);
  });
});

describe('a later start', () => {
  // Creating a cluster takes most of the time, so these tests share one.
  beforeAll(createDataDirectory);
  afterAll(removeDataDirectory);

  test('keeps its data across a restart', async () => {
    const first = await start();
    await query(first.url, 'create table kept as select 42 as answer');
    await first.close();
    const second = await start();
    expect(await query(second.url, 'select * from kept')).toEqual([{ answer: 42 }]);
    await second.close();
  });

  test('bounds the log of the server while it runs, and keeps what was before', async () => {
    await using stack = new AsyncDisposableStack();
    const server = await start();
    stack.defer(() => server.close());
    const log = join(dataDirectory, 'postgres.log');
    await truncate(log, 9 * 1024 * 1024);
    await expect.poll(async () => (await stat(log)).size).toBeLessThan(1024 * 1024);
    expect((await stat(`${log}.1`)).size).toBeGreaterThanOrEqual(9 * 1024 * 1024);
    await failure(query(server.url, 'select 1 / 0'));
    await expect.poll(() => readFile(log, 'utf8')).toMatch(/^[^\0]+division by zero/);
  });

  test('adopts the server of a crashed run', async () => {
    const crashed = await start();
    const pid = await postmaster();
    const next = await start();
    expect(events.at(-1)).toEqual({ kind: 'adopted', pid });
    expect(await query(next.url, 'select 1 as one')).toEqual([{ one: 1 }]);
    await Promise.all([next.close(), crashed.close()]);
    expect(await postmaster()).toBeUndefined();
  });

  test('restarts a killed server; the store fails with database_unavailable, then recovers', async () => {
    const server = await start();
    const store = await openStore({ url: server.url, placement: PLACEMENT });
    const pid = await postmaster();
    if (pid === undefined) throw new Error('no server');
    // A statement that waits for a lock is certain to see the server end, however fast the restart.
    const holder = new pg.Client({ connectionString: server.url });
    holder.on('error', () => undefined);
    await holder.connect();
    await holder.query('begin; lock table tenants');
    const waiting = failure(store.tenants.find('usr_1'));
    await expect
      .poll(() => query(server.url, 'select 1 from pg_locks where not granted'))
      .toHaveLength(1);
    process.kill(pid, 'SIGKILL');
    expect(await waiting).toMatchObject({ code: 'database_unavailable', status: 503 });
    await expect.poll(() => failure(store.ping())).toBeUndefined();
    expect(await postmaster()).not.toBe(pid);
    await store.close();
    await server.close();
  });
});
