import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { mkdtemp, readdir, rm, utimes } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  type ObjectStore,
  ObjectStoreError,
  openFsObjectStore,
  SignedUrls,
} from '@svc/object-store';
import { createLogger, Registry } from '@svc/service-kit';
import type { Store } from '@svc/store';
import type pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { startTestLedger, type TestLedger } from '../../test/test-ledger.ts';
import { objectRules } from '../retention/object-rules.ts';
import { createRetentionMetrics } from '../retention/retention.ts';
import { createLostChunksCounter, ObjectInventory } from './object-inventory.ts';
import { sweepObjects } from './sweep-objects.ts';

const SESSION = randomUUID();
const log: string[] = [];
const logger = createLogger({
  level: 'error',
  destination: { write: (line) => void log.push(line) },
});
const signal = () => AbortSignal.timeout(30_000);

let ledger: TestLedger;
let store: Store;
let sql: pg.Client;
let directory: string;
let objects: ObjectStore;
let workspace: string;
let sweeping: AbortController;
const lostChunks = createLostChunksCounter(new Registry());

beforeAll(async () => {
  ledger = await startTestLedger();
  ({ store, sql } = ledger);
  await sql.query(
    `insert into sessions (session_id, tenant_id, status, vm_id, agent, app_id, set_id, template, vendor,
       model, secrets, user_id, expires_at)
     values ($1, 't', 'active', 'vm', 'deictic', 'a', 's', 'standard', 'openai', 'm', '{}', 'u', now())`,
    [SESSION],
  );
});
afterAll(async () => {
  await ledger?.[Symbol.asyncDispose]();
});
beforeEach(async () => {
  await sql.query('truncate session_chunks, workspaces, object_deletions cascade');
  const { rows } = await sql.query(
    `insert into workspaces (tenant_id, app_id, capset_id) values ('t', 'a', 'c') returning workspace_id`,
  );
  workspace = String(rows[0]?.workspace_id);
  directory = await mkdtemp(join(tmpdir(), 'svc-objects-'));
  const urls = new SignedUrls([Buffer.alloc(32)], () => 'https://localhost');
  objects = await openFsObjectStore({ directory, urls });
  sweeping = new AbortController();
});
afterEach(async () => {
  sweeping.abort();
  await rm(directory, { recursive: true, force: true });
});

const keyOf = (name: string) => `sessions/${SESSION}/${name}`;
const exists = async (key: string) => (await objects.head(key, signal())) !== undefined;
const put = (key: string) => objects.put(key, Buffer.from('x'), { size: 1, signal: signal() });
/** Makes all objects so far two hours old. */
async function age(): Promise<void> {
  const past = new Date(Date.now() - 2 * 3_600_000);
  for (const entry of await readdir(directory, { recursive: true, withFileTypes: true })) {
    if (entry.isFile()) await utimes(join(entry.parentPath, entry.name), past, past);
  }
}
const addChunk = (byte: number, objectKey: string) =>
  store.sessionChunks.announce(SESSION, [
    { id: Buffer.alloc(32, byte), objectKey, storedBytes: 1 },
  ]);

const addWorkspaceChunk = (byte: number, objectKey: string) =>
  store.workspaceChunks.announce(workspace, [
    { id: Buffer.alloc(32, byte), objectKey, storedBytes: 1 },
  ]);
/** Makes an object the file `file` of the workspace. */
async function addFile(objectKey: string): Promise<void> {
  await sql.query(
    `insert into workspace_files (workspace_id, path, size_bytes, modified_at, object_key, version)
     values ($1, 'file', 1, now(), $2, 1)`,
    [workspace, objectKey],
  );
  await sql.query('update workspaces set size_bytes = 1, file_count = 1, entry_count = 1');
}
type RuledObjects = Pick<ObjectStore, 'delete' | 'list' | 'head'>;
const rulesFor = (using: RuledObjects) =>
  objectRules({
    store,
    objects: using,
    urls: undefined,
    workspaces: { endExpiredUploads: async () => 0 },
    lostChunks,
    logger,
  });
/** Sweeps as a control plane does, with this object store. */
function start(using: RuledObjects = objects): Promise<void> {
  const rules = rulesFor(using);
  const metrics = createRetentionMetrics(new Registry());
  return sweepObjects({ objects, rules, metrics, logger }, sweeping.signal);
}
/** Gives up the chunks of objects. */
async function giveUp(...keys: string[]): Promise<void> {
  for (const [at, key] of keys.entries()) {
    await addChunk(at, key);
    await put(key);
  }
  await sql.query(`update session_chunks set unused_since = now() - interval '2 hours'`);
  expect(await store.sessionChunks.removeUnused(3_600, 10)).toBe(keys.length);
}
/** Applies one rule once. */
async function apply(kind: string, using: RuledObjects = objects): Promise<void> {
  const found = rulesFor(using).find(({ rule }) => rule.kind === kind)?.rule;
  await found?.remove(found.seconds ?? 0, 1_000, signal());
}
/** Lets the time pass after which objects are deleted. */
const endWait = () => sql.query('update object_deletions set due_at = now()');
/** The store with pages of two objects. */
const inPairs = (): RuledObjects => ({
  list: (options, limit) => objects.list({ ...options, limit: 2 }, limit),
  head: objects.head.bind(objects),
  delete: objects.delete.bind(objects),
});
const waiting = async () => (await sql.query('select from object_deletions')).rowCount;

test('has a line of documentation for every rule', () => {
  const page = readFileSync(new URL('../../../../docs/operations.md', import.meta.url), 'utf8');
  for (const { rule } of rulesFor(objects)) expect(page).toContain(`\`${rule.kind}\``);
});

test('removes old objects that the ledger does not know, and only those', async () => {
  const ofWorkspace = (name: string) => `workspaces/t/${workspace}/${name}`;
  const lost = [
    keyOf('lost'),
    ...['chunks/lost', 'files/lost', 'uploads/lost', `uploads/${randomUUID()}`].map(ofWorkspace),
    'workspaces/t/gone/chunks/lost',
  ];
  const [upload, copy, file] = [randomUUID(), ofWorkspace('files/copy'), ofWorkspace('files/file')];
  const known = [
    keyOf('known'),
    // A file that is just being copied has no row but a reservation.
    ...[ofWorkspace('chunks/known'), ofWorkspace(`uploads/${upload}`), copy, file],
  ];
  const others = ['other/object'];
  const young = [keyOf('young'), ofWorkspace('chunks/young')];
  await addChunk(1, keyOf('known'));
  await addWorkspaceChunk(1, ofWorkspace('chunks/known'));
  await store.workspaces.reserve(copy, 14_400);
  await sql.query(
    `insert into workspace_uploads (upload_id, workspace_id, path, expires_at, taken_at)
     values ($1, $2, 'a', now() - interval '2 hours', now())`,
    [upload, workspace],
  );
  await addFile(file);
  for (const key of [...lost, ...known, ...others]) await put(key);
  await age();
  for (const key of young) await put(key);
  // As two control planes.
  const done = Promise.all([start(), start()]);
  await expect.poll(waiting).toBe(lost.length + 1);
  await sql.query('update object_deletions set due_at = now() where object_key <> $1', [copy]);
  for (const key of lost) await expect.poll(() => exists(key)).toBe(false);
  for (const key of [...known, ...others, ...young]) expect(await exists(key), key).toBe(true);
  sweeping.abort();
  await done;
});

test('keeps unknown objects for a database that is restored to a later time', async () => {
  const [later, lost] = [keyOf('later'), keyOf('lost')];
  for (const key of [later, lost]) await put(key);
  await age();
  await apply('unknown_session_objects');
  for (const key of [later, lost]) expect(await exists(key), key).toBe(true);
  expect(await waiting()).toBe(2);
  await apply('given_up_objects');
  expect(await waiting()).toBe(2);
  // As if somebody had copied the rows of one from the backup into this database.
  await addChunk(1, later);
  await endWait();
  await apply('given_up_objects');
  expect(await exists(later)).toBe(true);
  expect(await exists(lost)).toBe(false);
  expect(await waiting()).toBe(0);
});

test('lets a customer delete a file whose row came back after its object was missed', async () => {
  const key = `workspaces/t/${workspace}/files/a`;
  await put(key);
  await age();
  await apply('unknown_workspace_objects');
  expect(await waiting()).toBe(1);
  await addFile(key);
  expect(await store.workspaces.removeFile(workspace, Buffer.from('file'))).toBe(true);
  await endWait();
  await apply('given_up_objects');
  expect(await exists(key)).toBe(false);
});

test('goes through many unknown objects a few pages at a time', async () => {
  const kept = keyOf('kept');
  await addChunk(1, kept);
  for (const key of [kept, ...Array.from({ length: 50 }, (_, at) => keyOf(`lost-${at}`))]) {
    await put(key);
  }
  await age();
  const inventory = new ObjectInventory({
    objects: inPairs(),
    deletions: store.objectDeletions,
    chunks: store.sessionChunks,
    prefix: 'sessions/',
    lostChunks,
    logger,
  });
  expect(await inventory.compare(3_600, signal())).toBe(39);
  expect(await inventory.compare(3_600, signal())).toBe(11);
  expect(await inventory.compare(3_600, signal())).toBe(0);
  await endWait();
  await apply('given_up_objects');
  expect(await waiting()).toBe(0);
  expect(await exists(kept)).toBe(true);
});

describe('chunks whose objects are missing', () => {
  const names = ['a', 'b', 'c', 'd', 'e'];
  const keys = names.map(keyOf);
  const [lost, alsoLost, young] = [keyOf('b'), keyOf('e'), keyOf('c')];
  const lostCount = async () => (await lostChunks.get()).values[0]?.value ?? 0;
  const noted = async () => {
    const { rows } = await sql.query(
      'select object_key from session_chunks where lost_at is not null order by object_key',
    );
    return rows.map(({ object_key }) => object_key);
  };
  const store2HoursAgo = async (...objectKeys: string[]) => {
    await sql.query(
      `update session_chunks set stored_at = now() - interval '2 hours' where object_key = any($1)`,
      [objectKeys],
    );
  };
  beforeEach(async () => {
    log.length = 0;
    for (const [at, key] of keys.entries()) {
      await addChunk(at, key);
      await put(key);
    }
    await store.sessionChunks.confirm(keys);
    await store2HoursAgo(...keys.filter((key) => key !== young));
    await objects.delete([lost, young, alsoLost], signal());
  });

  test.each([
    ['in one page', () => objects],
    ['in many pages', inPairs],
  ])(
    'are noted %s, counted and logged, and those that were just stored are not',
    async (_, using) => {
      const before = await lostCount();
      await apply('unknown_session_objects', using());
      expect(await noted()).toEqual([lost, alsoLost]);
      expect((await lostCount()) - before).toBe(2);
      expect(log.join('')).toContain(lost);
      await apply('unknown_session_objects', using());
      expect((await lostCount()) - before).toBe(2);
    },
  );

  test('are all noted when the store has no object at all', async () => {
    await objects.delete(keys, signal());
    await apply('unknown_session_objects');
    expect(await noted()).toEqual(keys.filter((key) => key !== young));
  });

  test('are not noted if only the listing lacks them', async () => {
    await put(lost);
    const list: ObjectStore['list'] = async (options, limit) => {
      const page = await objects.list(options, limit);
      return { ...page, objects: page.objects.filter(({ key }) => key !== lost) };
    };
    await apply('unknown_session_objects', { ...inPairs(), list });
    expect(await noted()).toEqual([alsoLost]);
  });

  test('count as stored again once the objects are back', async () => {
    await apply('unknown_session_objects');
    await put(lost);
    await apply('unknown_session_objects');
    expect(await noted()).toEqual([alsoLost]);
  });

  test('of workspaces are noted, too', async () => {
    const key = `workspaces/t/${workspace}/chunks/a`;
    await addWorkspaceChunk(1, key);
    await store.workspaceChunks.confirm([key]);
    await sql.query(`update workspace_chunks set stored_at = now() - interval '2 hours'`);
    await apply('unknown_workspace_objects');
    const { rows } = await sql.query('select lost_at is not null as is_lost from workspace_chunks');
    expect(rows).toEqual([{ is_lost: true }]);
  });
});

test('keeps the deletions that an unavailable store prevents, for a later sweep', async () => {
  const given = ['a', 'b', 'c'].map(keyOf);
  await giveUp(...given);
  const tried: number[] = [];
  const first = start({
    list: objects.list.bind(objects),
    head: objects.head.bind(objects),
    delete: async (keys) => {
      tried.push(keys.length);
      throw new ObjectStoreError('object_store_unavailable', 'it is down');
    },
  });
  await expect.poll(() => tried.slice(0, 2)).toEqual([3, 1]);
  sweeping.abort();
  await first;
  for (const key of given) expect(await exists(key)).toBe(true);
  expect(await waiting()).toBe(3);
  sweeping = new AbortController();
  const second = start();
  for (const key of given) await expect.poll(() => exists(key)).toBe(false);
  await expect.poll(waiting).toBe(0);
  sweeping.abort();
  await second;
});

test('leaves an object to one control plane at a time, and to another when that one died', async () => {
  const given = keyOf('given-up');
  await giveUp(given);
  expect(await store.objectDeletions.claim(10)).toEqual([given]);
  expect(await store.objectDeletions.claim(10)).toEqual([]);
  await sql.query(`update object_deletions set due_at = due_at - interval '10 minutes'`);
  expect(await store.objectDeletions.claim(10)).toEqual([given]);
});
