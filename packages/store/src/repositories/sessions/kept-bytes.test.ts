import { randomBytes, randomUUID } from 'node:crypto';
import type { Kysely } from 'kysely';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { insertSession } from '../../../test/insert-session.ts';
import { insertTenants } from '../../../test/insert-tenants.ts';
import { startTestDatabase, type TestDatabase } from '../../../test/test-database.ts';
import type { Schema } from '../../schema.ts';
import { ChunkRepository, SESSION_CHUNKS } from '../chunks/chunk-repository.ts';
import { eraseEnded } from './erasure.ts';
import { SessionHistoryRepository, type Turn } from './history.ts';
import { keptBytes } from './kept-bytes.ts';

const MOST = 100;
const FRAMES = Buffer.from('{}\n');
/** What a session with one chunk of 27 bytes keeps. */
const ONE = 30;

let database: TestDatabase;
let db: Kysely<Schema>;
/** As of two control planes. */
let histories: SessionHistoryRepository[];
let chunks: ChunkRepository;
let seq = 0;

beforeAll(async () => {
  database = await startTestDatabase();
  db = database.db;
  await insertTenants(db, 't', 'other');
  histories = [0, 1].map(() => new SessionHistoryRepository(db, 1_000, MOST));
  chunks = new ChunkRepository(db, SESSION_CHUNKS);
});
afterAll(() => database?.[Symbol.asyncDispose]());
beforeEach(() => db.deleteFrom('sessions').execute());

const newSession = (tenant = 't') => insertSession(db, tenant);
/** A turn with files of one chunk, which is stored. */
async function turnOf(sessionId: string, storedBytes = ONE - FRAMES.length): Promise<Turn> {
  const id = randomBytes(32);
  const objectKey = `sessions/${sessionId}/${randomUUID()}`;
  await chunks.announce(sessionId, [{ id, objectKey, storedBytes }]);
  await chunks.confirm([objectKey]);
  seq += 1;
  const files = { filesId: `f${seq}`, sizeBytes: 1_000, chunkIds: [id] };
  return { sessionId, generation: 1, firstSeq: 1, lastSeq: 1, frames: FRAMES, files };
}
const commit = (turn: Turn, index = 0) =>
  (histories[index % 2] as SessionHistoryRepository).commit(turn);

describe('the bytes that the sessions of a tenant keep', () => {
  test('stay below the limit, however many turns add files at once', async () => {
    const turns = await Promise.all(
      Array.from({ length: 12 }, async () => turnOf(await newSession())),
    );
    const outcomes = await Promise.all(turns.map(commit));
    expect(outcomes.filter((outcome) => outcome === 'committed')).toHaveLength(3);
    expect(new Set(outcomes)).toEqual(new Set(['committed', 'storage_full']));
    expect(await keptBytes(db, 't')).toBe(3 * ONE);
  });

  test('a refused turn changes nothing, and can be committed without its files', async () => {
    const ids = await Promise.all([1, 2, 3, 4].map(() => newSession()));
    for (const id of ids.slice(0, 3)) expect(await commit(await turnOf(id))).toBe('committed');
    const last = String(ids[3]);
    const turn = await turnOf(last);
    const before = await histories[0]?.state(last);
    expect(await commit(turn)).toBe('storage_full');
    expect(await histories[0]?.state(last)).toEqual(before);
    const { files: _, ...rest } = turn;
    expect(await commit(rest)).toBe('committed');
    expect(await histories[0]?.state(last)).toMatchObject({ lastSeq: 1, filesId: undefined });
  });

  test('may shrink at the limit, and are free again after an erasure', async () => {
    const ids = await Promise.all([1, 2, 3, 4].map(() => newSession()));
    for (const id of ids.slice(0, 3)) await commit(await turnOf(id));
    const [first = '', second = '', , last = ''] = ids;
    const smaller = await turnOf(first, 20);
    expect(await commit({ ...smaller, firstSeq: 2, lastSeq: 2 })).toBe('committed');
    const late = await turnOf(last);
    expect(await commit(late)).toBe('storage_full');
    await db
      .updateTable('sessions')
      .set({ status: 'completed', ended_at: new Date() })
      .where('session_id', '=', second)
      .execute();
    await eraseEnded(db, second);
    expect(await commit(late)).toBe('committed');
  });

  test('are those of conversations and frames too, and stay below the limit however many turns come at once', async () => {
    const frames = Buffer.from(`${'f'.repeat(9)}\n`);
    const conversation = Buffer.alloc(20, 'c');
    const ids = await Promise.all(Array.from({ length: 12 }, () => newSession()));
    const turns = ids.map((sessionId) => {
      return { sessionId, generation: 1, firstSeq: 1, lastSeq: 1, frames, conversation };
    });
    const outcomes = await Promise.all(turns.map(commit));
    expect(outcomes.filter((outcome) => outcome === 'committed')).toHaveLength(3);
    expect(await keptBytes(db, 't')).toBe(3 * ONE);
    // Its numbers need no room, and what it kept before stays readable.
    const refused = turns[outcomes.indexOf('storage_full')] as Turn;
    const { conversation: _, ...numbers } = { ...refused, frames: Buffer.alloc(0) };
    expect(await commit(numbers)).toBe('committed');
    const state = await histories[0]?.state(refused.sessionId);
    expect(state).toMatchObject({ lastSeq: 1, frames: [], firstSeq: 2, conversation: undefined });
    expect(await keptBytes(db, 't')).toBe(3 * ONE);
  });

  test('are those of one tenant', async () => {
    for (let index = 0; index < 3; index += 1) await commit(await turnOf(await newSession()));
    expect(await commit(await turnOf(await newSession('other')))).toBe('committed');
  });
});
