import { randomBytes } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { ChunkUrls, CommitTurnRequest, SessionState } from '@svc/contract';
import { WorkerDouble } from '@svc/worker-double';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { askAsWorker } from '../../../test/ask-as-worker.ts';
import { CLUSTER_SECRET, Harness, type StartedSession } from '../../../test/harness.ts';

const NOT_FOUND = { status: 404, code: 'session_not_found' };
const STALE = { status: 409, code: 'stale_generation' };
const NO_FILE = { status: 404, code: 'file_not_found' };

let harness: Harness;
let account: Awaited<ReturnType<Harness['signUp']>>;
let worker: WorkerDouble;
let other: WorkerDouble;
let session: StartedSession;

beforeAll(async () => {
  // A limit for customers, which does not apply to workers.
  harness = await Harness.start({ SVC_LIMIT_UPLOAD_BYTES: '1000' });
  account = await harness.signUp();
  await harness.addBundle(account.key, 'llm', { LLM_API_KEY: 'k' });
});
afterAll(() => harness?.[Symbol.asyncDispose]());
beforeEach(async () => {
  await harness.reset();
  worker = await harness.addWorker('w1');
  other = await harness.addWorker('w2', (w) => {
    // Too little for a session.
    w.memoryMib = 256;
  });
  session = await harness.startSession(account.key);
});

type As = Pick<WorkerDouble, 'ask'>;
interface Caller {
  readonly as?: As;
  readonly id?: string;
  readonly generation?: number;
}

const url = () => harness.plane.url;
const ask = (method: string, path: string, body?: object, as: As = worker) =>
  askAsWorker(as, url(), method, path, body);
const post = (path: string, body: object, as: As = worker) => ask('POST', path, body, as);
const call = (operation: string, body: object, { as, id, generation = 1 }: Caller = {}) =>
  post(`/sessions/${id ?? session.id}/chunks/${operation}`, { generation, ...body }, as);
const secretOf = ({ as = worker, id = session.id, generation = 1 }: Caller = {}) =>
  ask('GET', `/sessions/${id}/chunk-secret?generation=${generation}`, undefined, as);
const newId = () => randomBytes(32).toString('base64url');
const urlsOf = (answer: { body: object }) =>
  (answer.body as ChunkUrls).chunks.map((chunk) => new URL(chunk.url, url()));
const announce = (chunks: Record<string, Buffer>, caller: Caller = {}) =>
  call(
    'uploads',
    { chunks: Object.entries(chunks).map(([id, { length }]) => ({ id, stored_bytes: length })) },
    caller,
  );
const put = async (target: URL, bytes: Buffer) =>
  (
    await fetch(target, {
      method: 'PUT',
      headers: { 'content-type': 'application/octet-stream' },
      body: new Uint8Array(bytes),
    })
  ).status;
/** Stores one chunk as a worker does. */
async function store(id: string, bytes: Buffer, caller: Caller = {}): Promise<void> {
  const [target] = urlsOf(await announce({ [id]: bytes }, caller));
  expect(await put(target as URL, bytes)).toBeLessThan(300);
  expect((await call('uploaded', { ids: [id] }, caller)).status).toBe(204);
}
let seq = 0;
const commit = (chunks: readonly string[], changes: Partial<CommitTurnRequest> = {}) => {
  seq += 1;
  return post(`/sessions/${session.id}/turns`, {
    generation: 1,
    vm_id: session.vmId,
    first_seq: seq,
    last_seq: seq,
    frames: '{}\n',
    files_id: `f${seq}`,
    manifest: { size_bytes: 10, chunks },
    ...changes,
  });
};
const state = async () =>
  (await ask('GET', `/sessions/${session.id}/state`)).body as unknown as SessionState;
const read = async (id: string) => {
  const [target] = urlsOf(await call('downloads', { ids: [id] }));
  return Buffer.from(await (await fetch(target as URL)).arrayBuffer());
};

describe('chunks of a session', () => {
  test('are stored by URL, named by a turn, and returned unchanged', async () => {
    const [a, b] = [newId(), newId()];
    const bytes = randomBytes(300_000);
    expect((await call('missing', { ids: [a, b] })).body).toEqual({ ids: [a, b] });
    await store(a, bytes);
    expect((await call('missing', { ids: [a, b] })).body).toEqual({ ids: [b] });
    expect((await commit([a, a])).status).toBe(204);
    expect(await state()).toMatchObject({
      files_id: `f${seq}`,
      manifest: { size_bytes: 10, chunks: [a, a] },
    });
    expect((await read(a)).equals(bytes)).toBe(true);
    expect((await announce({ [a]: bytes })).body).toEqual({ chunks: [] });
  });

  test('have URLs that are relative to the control plane, for workers that reach it elsewhere', async () => {
    const { body } = await announce({ [newId()]: Buffer.alloc(1) });
    expect((body as unknown as ChunkUrls).chunks[0]?.url).toMatch(/^\/objects\/sessions\//);
  });

  test('that were not uploaded cannot be named, and such a turn is not committed', async () => {
    const [known, announced] = [newId(), newId()];
    await store(known, Buffer.from('x'));
    await announce({ [announced]: Buffer.from('y') });
    expect(await call('uploaded', { ids: [announced] })).toMatchObject(NO_FILE);
    for (const id of [newId(), announced]) {
      expect(await commit([known, id], { conversation: 'x' })).toMatchObject(NO_FILE);
    }
    // An id of files that only an earlier version could have uploaded.
    const { files_id } = { files_id: 'old' };
    expect(
      await post(`/sessions/${session.id}/turns`, {
        generation: 1,
        vm_id: session.vmId,
        first_seq: 1,
        last_seq: 1,
        frames: '{}\n',
        files_id,
      }),
    ).toMatchObject(NO_FILE);
    expect(await state()).toMatchObject({ last_seq: 0, frames: '' });
    expect(await call('downloads', { ids: [announced] })).toMatchObject(NO_FILE);
  });

  test('of another size than announced are not confirmed', async () => {
    const id = newId();
    const [target] = urlsOf(await announce({ [id]: Buffer.alloc(10) }));
    expect(await put(target as URL, Buffer.alloc(11))).toBeGreaterThanOrEqual(400);
    expect(await call('uploaded', { ids: [id] })).toMatchObject(NO_FILE);
  });

  test('are refused while the account has too many that nothing uses', async () => {
    await harness.sql.query(
      `insert into session_chunks (session_id, chunk_id, object_key, stored_bytes)
       select $1, sha256(n::text::bytea), gen_random_uuid(), 2147483647 from generate_series(1, 5) n`,
      [session.id],
    );
    const chunk = { [newId()]: Buffer.alloc(100) };
    expect(await announce(chunk)).toMatchObject({ status: 409, code: 'session_storage_full' });
    await harness.sql.query('delete from session_chunks');
    expect(await announce(chunk)).toMatchObject({ status: 200 });
  });

  test('larger than any chunk, and malformed ids, are rejected', async () => {
    expect(await announce({ [newId()]: Buffer.alloc(1024 * 1024 + 65) })).toMatchObject({
      status: 400,
    });
    for (const id of ['', '../x', 'A'.repeat(42), `${'A'.repeat(42)}B`, '\0'.repeat(43)]) {
      expect(await call('missing', { ids: [id] })).toMatchObject({ status: 400 });
    }
    expect(await call('missing', { ids: [] })).toMatchObject({ status: 400 });
    expect(await call('missing', { ids: Array.from({ length: 257 }, newId) })).toMatchObject({
      status: 400,
    });
  });

  test('are available to the worker of the session’s sandbox only, and to its latest start only', async () => {
    const id = newId();
    await store(id, Buffer.from('x'));
    const runtime = new WorkerDouble('svc-runtime', CLUSTER_SECRET);
    const everything = async (caller: Caller) => [
      await secretOf(caller),
      await call('missing', { ids: [id] }, caller),
      await announce({ [newId()]: Buffer.from('x') }, caller),
      await call('uploaded', { ids: [id] }, caller),
      await call('downloads', { ids: [id] }, caller),
    ];
    for (const caller of [
      { as: other },
      { as: runtime },
      { id: 'none' },
      { id: '00000000-0000-7000-8000-000000000000' },
      { generation: 2 },
    ]) {
      for (const answer of await everything(caller)) expect(answer).toMatchObject(NOT_FOUND);
    }
    await harness.call('POST', '/v1/sessions/resume', {
      key: account.key,
      json: { chat_session_id: session.id },
    });
    for (const answer of await everything({})) expect(answer).toMatchObject(STALE);
    for (const answer of await everything({ generation: 2 })) {
      expect(answer.status).toBeLessThan(300);
    }
  });

  test('are invisible from another session, even one of the same account on the same worker', async () => {
    const id = newId();
    await store(id, Buffer.from('x'));
    const second = await harness.startSession(account.key);
    const foreign = { id: second.id };
    expect((await call('missing', { ids: [id] }, foreign)).body).toEqual({ ids: [id] });
    expect(await call('downloads', { ids: [id] }, foreign)).toMatchObject(NO_FILE);
    expect((await call('uploaded', { ids: [id] }, foreign)).status).toBe(204);
    const answer = await post(`/sessions/${second.id}/turns`, {
      generation: 1,
      vm_id: second.vmId,
      first_seq: 1,
      last_seq: 1,
      frames: '{}\n',
      files_id: 'f',
      manifest: { size_bytes: 1, chunks: [id] },
    });
    expect(answer).toMatchObject(NO_FILE);
  });

  test('cannot be read or replaced with a URL for another chunk or another method', async () => {
    const [own, victim] = [newId(), newId()];
    await store(victim, Buffer.from('the committed content'));
    const [target] = urlsOf(await announce({ [own]: Buffer.from('x') })) as [URL];
    const [download] = urlsOf(await call('downloads', { ids: [victim] })) as [URL];
    const forged = new URL(target);
    forged.pathname = download.pathname;
    expect(await put(forged, Buffer.from('x'))).toBeGreaterThanOrEqual(400);
    expect(await put(download, Buffer.from('x'))).toBeGreaterThanOrEqual(400);
    expect((await fetch(target)).status).toBeGreaterThanOrEqual(400);
    expect((await read(victim)).toString()).toBe('the committed content');
  });
});

describe('the secret of a session’s chunks', () => {
  test('is the same at every start, and differs between sessions and accounts', async () => {
    const second = await harness.startSession(account.key);
    const stranger = await harness.signUp();
    await harness.addBundle(stranger.key, 'llm', { LLM_API_KEY: 'k' });
    const third = await harness.startSession(stranger.key);
    const secrets = [];
    for (const id of [session.id, second.id, third.id]) {
      const { body } = await secretOf({ id });
      expect(Buffer.from(String(body.secret), 'base64')).toHaveLength(32);
      secrets.push(body.secret);
    }
    expect(new Set(secrets).size).toBe(3);
    expect((await secretOf()).body.secret).toBe(secrets[0]);
    // It is not in the database, where only wrapped keys are.
    const dump = await harness.dump();
    for (const secret of secrets) {
      expect(dump).not.toContain(String(secret));
      expect(dump).not.toContain(Buffer.from(String(secret), 'base64').toString('latin1'));
    }
  });

  test('is the same for all who ask first at the same time', async () => {
    await harness.sql.query('delete from tenant_keys');
    const answers = await Promise.all(Array.from({ length: 8 }, () => secretOf()));
    expect(new Set(answers.map(({ body }) => body.secret)).size).toBe(1);
  });
});

describe('objects of a session', () => {
  const age = (table: string, column: string) =>
    harness.sql.query(`update ${table} set ${column} = ${column} - interval '2 hours'`);
  const objectsOf = async (id: string) =>
    (
      await harness.sql.query('select object_key from session_chunks where chunk_id = $1', [
        Buffer.from(id, 'base64url'),
      ])
    ).rowCount;

  test('that no turn names any more are removed after a while, and others are not', async () => {
    const [kept, replaced, crashed] = [newId(), newId(), newId()];
    await store(kept, Buffer.from('kept'));
    await store(replaced, Buffer.from('replaced'));
    await commit([kept, replaced]);
    await commit([kept]);
    const [upload] = urlsOf(await announce({ [crashed]: Buffer.from('crashed') })) as [URL];
    await put(upload, Buffer.from('crashed'));
    const [download] = urlsOf(await call('downloads', { ids: [replaced] })) as [URL];
    await age('session_chunks', 'unused_since');
    // A starting control plane sweeps at once.
    await harness.restart();
    const moved = new URL(download.pathname + download.search, url());
    await expect.poll(async () => (await fetch(moved)).status).toBe(404);
    expect(await objectsOf(replaced)).toBe(0);
    expect(await objectsOf(crashed)).toBe(0);
    expect((await read(kept)).toString()).toBe('kept');
    await expect
      .poll(async () => (await harness.sql.query('select from object_deletions')).rowCount)
      .toBe(0);
  });

  test('that are lost are an error of the resume, not an empty file', async () => {
    const id = newId();
    await store(id, Buffer.from('x'));
    await commit([id]);
    await rm(join(harness.dataDir, 'objects', 'keys', 'sessions'), { recursive: true });
    const [target] = urlsOf(await call('downloads', { ids: [id] })) as [URL];
    expect((await fetch(target)).status).toBe(404);
  });
});
