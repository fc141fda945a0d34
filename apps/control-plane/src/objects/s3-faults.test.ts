import { createHash, randomBytes } from 'node:crypto';
import type { ChunkUrls, SessionState } from '@svc/contract';
import { type ObjectStore, openS3ObjectStore } from '@svc/object-store';
import { FaultyProxy, type S3Server, startS3Server } from '@svc/s3-server';
import { Secret } from '@svc/service-kit';
import type { WorkerDouble } from '@svc/worker-double';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { type Answer, Harness, type StartedSession } from '../../test/harness.ts';

/** What is kept in an S3 server, and what happens while that server fails. */

// The server syncs every write to disk, which takes seconds while other tests write too.
vi.setConfig({ testTimeout: 240_000, hookTimeout: 240_000 });

const JSON_TYPE = { 'content-type': 'application/json' };
const HEAD_FAILURES = 'svc_object_store_failures_total{operation="head"}';
const OCTETS = { 'content-type': 'application/octet-stream' };
const FAULTS = [
  ['closes every connection', 'closed'],
  ['answers 500', 'broken'],
] as const;

let server: S3Server;
let proxy: FaultyProxy;
let harness: Harness;
/** The store without the proxy. */
let bucket: ObjectStore;
let account: Awaited<ReturnType<Harness['signUp']>>;
let worker: WorkerDouble;
let session: StartedSession;
let seq = 0;

beforeAll(async () => {
  server = await startS3Server();
  proxy = await FaultyProxy.start(server.settings.endpoint);
  const { region, bucket: name, accessKeyId, secretAccessKey } = server.settings;
  harness = await Harness.start({
    SVC_S3_ENDPOINT: proxy.url,
    SVC_S3_REGION: region,
    SVC_S3_BUCKET: name,
    SVC_S3_ACCESS_KEY_ID: accessKeyId,
    SVC_S3_SECRET_ACCESS_KEY: secretAccessKey,
  });
  bucket = openS3ObjectStore({
    ...server.settings,
    secretAccessKey: new Secret(secretAccessKey),
  });
  account = await harness.signUp();
  await harness.addBundle(account.key, 'llm', { LLM_API_KEY: 'k' });
});
afterAll(async () => {
  proxy?.recover();
  await harness?.[Symbol.asyncDispose]();
  await bucket?.[Symbol.asyncDispose]();
  await proxy?.[Symbol.asyncDispose]();
  await server?.close();
});
beforeEach(async () => {
  await harness.reset();
  worker = await harness.addWorker('w1');
  session = await harness.startSession(account.key);
});
afterEach(() => proxy.recover());

const unavailable = { status: 503, body: { code: 'object_store_unavailable' } };
const keysUnder = async (prefix: string) =>
  (await bucket.list({ prefix, limit: 1000 }, AbortSignal.timeout(60_000))).objects.map(
    ({ key }) => key,
  );

async function ask(method: string, path: string, json?: object): Promise<Answer> {
  const answer = await worker.ask(harness.plane.url, method, path, {
    ...(json === undefined ? {} : { headers: JSON_TYPE, body: JSON.stringify(json) }),
  });
  const text = await answer.text();
  const body = text === '' ? {} : JSON.parse(text);
  return { status: answer.status, headers: answer.headers, text, body };
}
const onChunks = (operation: string, json: object) =>
  ask('POST', `/sessions/${session.id}/chunks/${operation}`, { generation: 1, ...json });
const idOf = (bytes: Buffer) => createHash('sha256').update(bytes).digest('base64url');
const urlOf = ({ body }: Answer) => (body as unknown as ChunkUrls).chunks[0]?.url ?? '';

/** Sends a chunk as a worker does, but does not confirm it. */
async function upload(bytes: Buffer): Promise<void> {
  const chunks = [{ id: idOf(bytes), stored_bytes: bytes.length }];
  const announced = await onChunks('uploads', { chunks });
  const body = new Uint8Array(bytes);
  const sent = await fetch(urlOf(announced), { method: 'PUT', headers: OCTETS, body });
  expect(sent.status).toBe(200);
}
const confirm = (bytes: Buffer) => onChunks('uploaded', { ids: [idOf(bytes)] });
async function download(bytes: Buffer): Promise<Buffer> {
  const located = await onChunks('downloads', { ids: [idOf(bytes)] });
  return Buffer.from(await (await fetch(urlOf(located))).arrayBuffer());
}
function commit(files?: Buffer): Promise<Answer> {
  seq += 1;
  return ask('POST', `/sessions/${session.id}/turns`, {
    generation: 1,
    vm_id: session.vmId,
    first_seq: seq,
    last_seq: seq,
    frames: '{}\n',
    conversation: `until ${seq}`,
    ...(files === undefined
      ? {}
      : { files_id: `f${seq}`, manifest: { size_bytes: files.length, chunks: [idOf(files)] } }),
  });
}
const state = async () =>
  (await ask('GET', `/sessions/${session.id}/state`)).body as unknown as SessionState;

/** Calls a route of a workspace that is named like the session. */
const onFiles = (method: string, path = '', headers = {}) =>
  harness.call(method, `/v1/workspaces/w-${session.id}/default${path}`, {
    key: account.token,
    headers,
  });
const sendFile = async ({ body }: Answer, content: string) =>
  expect((await fetch(String(body.url), { method: 'PUT', body: content })).status).toBe(200);
const paths = async () =>
  ((await onFiles('GET')).body.files as { path: string }[]).map(({ path }) => path);
const bytesOf = async (path: string) =>
  (await onFiles('GET', `/files/${path}`, { accept: 'application/octet-stream' })).text;
const eraseSession = () =>
  harness.call('DELETE', `/v1/sessions/${session.id}?erase=true`, { key: account.key });

describe('in S3', () => {
  test('the files of a session are stored by URL, returned unchanged, and erased', async () => {
    const files = randomBytes(300_000);
    await upload(files);
    expect((await confirm(files)).status).toBe(204);
    expect((await commit(files)).status).toBe(204);
    expect((await state()).manifest).toEqual({ size_bytes: files.length, chunks: [idOf(files)] });
    expect((await download(files)).equals(files)).toBe(true);
    expect(await keysUnder(`sessions/${session.id}/`)).toHaveLength(1);
    expect((await eraseSession()).status).toBe(200);
    await expect.poll(() => keysUnder(`sessions/${session.id}/`)).toEqual([]);
  });

  test('a file of a workspace appears when its upload is complete, and is replaced and deleted', async () => {
    const begun = await onFiles('PUT', '/files/a');
    expect(await paths()).toEqual([]);
    await sendFile(begun, 'old');
    expect(await paths()).toEqual(['a']);
    await sendFile(await onFiles('PUT', '/files/a?size=3'), 'new');
    expect(await bytesOf('a')).toBe('new');
    const { url } = (await onFiles('GET', '/files/a')).body;
    expect(await (await fetch(String(url))).text()).toBe('new');
    expect((await onFiles('DELETE', '/files/a')).status).toBe(200);
    expect(await paths()).toEqual([]);
  });
});

describe.each(FAULTS)('while the S3 server %s', (_, fault) => {
  test('a turn is committed without its files, which a later turn brings', async () => {
    const files = randomBytes(10_000);
    await upload(files);
    proxy.fail(fault);
    const refused = await confirm(files);
    expect(refused).toMatchObject(unavailable);
    expect(refused.headers.get('retry-after')).toBe('5');
    expect((await harness.metrics())[HEAD_FAILURES]).toBeGreaterThan(0);
    expect((await commit()).status).toBe(204);
    expect(await state()).toMatchObject({ conversation: `until ${seq}` });
    expect(await state()).not.toHaveProperty('manifest');

    proxy.recover();
    expect((await confirm(files)).status).toBe(204);
    expect((await commit(files)).status).toBe(204);
    expect((await download(files)).equals(files)).toBe(true);
  });

  test('the routes of workspaces answer 503, and no upload is lost', async () => {
    await sendFile(await onFiles('PUT', '/files/a'), 'kept');
    proxy.fail(fault);
    for (const [method, path] of [
      ['GET', ''],
      ['GET', '/usage'],
      ['GET', '/files/a'],
      ['DELETE', '/files/a'],
    ] as const) {
      const refused = await onFiles(method, path);
      expect(refused, `${method} ${path}`).toMatchObject(unavailable);
      expect(refused.headers.get('retry-after')).toBe('5');
    }
    proxy.recover();
    expect(await paths()).toEqual(['a']);
    expect(await bytesOf('a')).toBe('kept');
  });

  test('deletions and erasures hold, and remove their objects later', async () => {
    const others = new Set(await keysUnder(''));
    const mine = async () => (await keysUnder('')).filter((key) => !others.has(key));
    const files = randomBytes(1_000);
    await upload(files);
    await confirm(files);
    expect((await commit(files)).status).toBe(204);
    await sendFile(await onFiles('PUT', '/files/a'), 'unwanted');
    expect(await paths()).toEqual(['a']);
    const before = await mine();
    expect(before).toHaveLength(2);

    proxy.fail(fault);
    expect((await onFiles('DELETE', '/files/a')).status).toBe(200);
    expect(await paths()).toEqual([]);
    expect((await eraseSession()).status).toBe(200);
    const failed = proxy.failed;
    // The sweep tries in vain.
    await expect.poll(() => proxy.failed).toBeGreaterThan(failed);
    expect(await mine()).toEqual(before);

    proxy.recover();
    // A starting control plane deletes what is due at once.
    await harness.restart();
    await expect.poll(mine).toEqual([]);
    // Copies that failed before are due later.
    const due = 'select from object_deletions where claimed or due_at <= now()';
    await expect.poll(async () => (await harness.sql.query(due)).rowCount).toBe(0);
  });
});

test('requests wait for an S3 server that is slow', async () => {
  const files = randomBytes(1_000);
  await upload(files);
  await sendFile(await onFiles('PUT', '/files/a'), 'late');
  const failed = proxy.failed;
  proxy.fail('slow');
  const answers = Promise.all([confirm(files), onFiles('GET', '/files/a')]);
  await expect.poll(() => proxy.failed).toBeGreaterThanOrEqual(failed + 2);
  proxy.recover();
  expect((await answers).map(({ status }) => status)).toEqual([204, 200]);
  expect(await bytesOf('a')).toBe('late');
});

test('a resume while the object store fails is 503, and succeeds later', async () => {
  const resume = () =>
    harness.call('POST', '/v1/sessions/resume', {
      key: account.key,
      json: { chat_session_id: session.id },
    });
  worker.failures.set('create', 'object_store_unavailable');
  const refused = await resume();
  expect(refused).toMatchObject(unavailable);
  expect(refused.headers.get('retry-after')).toBe('5');
  worker.failures.clear();
  expect((await resume()).status).toBe(200);
});
