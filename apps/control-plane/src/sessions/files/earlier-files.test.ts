import { randomUUID } from 'node:crypto';
import { buffer } from 'node:stream/consumers';
import { openStore, type Store } from '@svc/store';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Harness, type StartedSession } from '../../../test/harness.ts';
import { EarlierFiles } from './earlier-files.ts';

const MIB = 1024 * 1024;

let harness: Harness;
let store: Store;
let files: EarlierFiles;
let session: StartedSession;

beforeAll(async () => {
  harness = await Harness.start();
  store = await openStore({
    url: harness.postgres.url,
    placement: { unreachableMs: 30_000, sandboxesPerTenant: 1 },
  });
  files = new EarlierFiles(store);
  const { key } = await harness.signUp();
  await harness.addBundle(key, 'llm', { LLM_API_KEY: 'k' });
  await harness.addWorker('w1');
  session = await harness.startSession(key);
});
afterAll(async () => {
  await store?.close();
  await harness?.[Symbol.asyncDispose]();
});

/** Stores files as versions without chunks did. */
async function storeInDatabase(filesId: string, pieces: readonly Buffer[]): Promise<void> {
  const upload = randomUUID();
  await harness.sql.query(
    `insert into session_uploads (upload_id, session_id, files_id, size_bytes, committed)
     values ($1, $2, $3, $4, true)`,
    [upload, session.id, filesId, Buffer.concat([...pieces]).length],
  );
  for (const [piece, bytes] of pieces.entries()) {
    await harness.sql.query('insert into session_pieces values ($1, $2, $3)', [
      upload,
      piece,
      bytes,
    ]);
  }
  await harness.sql.query('update sessions set files_id = $1', [filesId]);
}
const request = (filesId: string) => ({ workerId: 'w1', sessionId: session.id, filesId });

test('sends files from the database as they are, and no others', async () => {
  const pieces = [Buffer.alloc(MIB, 1), Buffer.alloc(MIB, 2), Buffer.from('rest')];
  await storeInDatabase('f', pieces);
  const { body, length } = await files.open(request('f'));
  expect(length).toBe(2 * MIB + 4);
  expect((await buffer(body)).equals(Buffer.concat(pieces))).toBe(true);
  const state = await store.sessionHistory.state(session.id);
  expect(state).toMatchObject({ filesId: 'f', manifest: undefined });
  for (const filesId of ['none', '..', '\0', 'a b']) {
    await expect(files.open(request(filesId))).rejects.toThrow();
  }
  await expect(files.open({ ...request('f'), workerId: 'w2' })).rejects.toMatchObject({
    code: 'session_not_found',
  });
});

test('accepts an empty archive', async () => {
  await storeInDatabase('empty', []);
  expect((await files.open(request('empty'))).length).toBe(0);
});

test('are replaced by the chunks of the next turn that changes a file', async () => {
  await storeInDatabase('before', [Buffer.from('old')]);
  const turn = {
    sessionId: session.id,
    generation: 1,
    firstSeq: 1,
    lastSeq: 1,
    frames: Buffer.from('{}\n'),
  };
  // A turn without files keeps them.
  expect(await store.sessionHistory.commit(turn)).toBe('committed');
  expect(await store.sessionHistory.state(session.id)).toMatchObject({ filesId: 'before' });
  const chunkIds = [Buffer.alloc(32, 1)];
  const [chunk] = await store.sessionChunks.announce(session.id, [
    { id: Buffer.alloc(32, 1), objectKey: 'k', storedBytes: 3 },
  ]);
  await store.sessionChunks.confirm([chunk?.objectKey ?? '']);
  const next = {
    ...turn,
    firstSeq: 2,
    lastSeq: 2,
    files: { filesId: 'n', sizeBytes: 3, chunkIds },
  };
  expect(await store.sessionHistory.commit(next)).toBe('committed');
  expect(await store.sessionHistory.state(session.id)).toMatchObject({
    filesId: 'n',
    manifest: { filesId: 'n', chunkIds },
  });
  expect((await harness.sql.query('select from session_uploads')).rowCount).toBe(0);
  expect((await harness.sql.query('select from session_pieces')).rowCount).toBe(0);
});
