import { Readable } from 'node:stream';
import { openStore, type Store } from '@svc/store';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { Harness, type StartedSession } from '../../test/harness.ts';
import { SessionFiles } from './session-files.ts';

const MIB = 1024 * 1024;
const MOST = 3 * MIB;

let harness: Harness;
let store: Store;
let files: SessionFiles;
let session: StartedSession;

beforeAll(async () => {
  harness = await Harness.start();
  store = await openStore({
    url: harness.postgres.url,
    placement: { unreachableMs: 30_000, sandboxesPerTenant: 1 },
  });
  files = new SessionFiles(store, MOST);
  const { key } = await harness.signUp();
  await harness.addBundle(key, 'llm', { LLM_API_KEY: 'k' });
  await harness.addWorker('w1');
  session = await harness.startSession(key);
});
afterAll(async () => {
  await store?.close();
  await harness?.[Symbol.asyncDispose]();
});
beforeEach(() => harness.sql.query('truncate session_uploads cascade'));

const request = (filesId: string) => ({ workerId: 'w1', sessionId: session.id, filesId });
const pieces = async () =>
  (
    await harness.sql.query(
      'select octet_length(bytes) as length from session_pieces order by piece',
    )
  ).rows.map((row) => row.length);

test('stores files of the largest size in pieces', async () => {
  await files.receive(request('f'), 1, Readable.from(Array(6).fill(Buffer.alloc(MIB / 2, 1))));
  expect(await pieces()).toEqual([MIB, MIB, MIB]);
  const { body, length } = await files.open(request('f'));
  expect(length).toBe(MOST);
  let read = 0;
  for await (const chunk of body) read += chunk.length;
  expect(read).toBe(MOST);
});

test('rejects larger files and stores nothing of them', async () => {
  const source = Readable.from([...Array(3).fill(Buffer.alloc(MIB, 1)), Buffer.from('x')]);
  await expect(files.receive(request('f'), 1, source)).rejects.toMatchObject({
    code: 'payload_too_large',
  });
  expect(await pieces()).toEqual([]);
  expect((await harness.sql.query('select 1 from session_uploads')).rowCount).toBe(0);
});

test('accepts an empty archive', async () => {
  await files.receive(request('f'), 1, Readable.from([]));
  expect((await files.open(request('f'))).length).toBe(0);
});
