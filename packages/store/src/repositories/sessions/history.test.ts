import type { Kysely } from 'kysely';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { insertSession } from '../../../test/insert-session.ts';
import { insertTenants } from '../../../test/insert-tenants.ts';
import { startTestDatabase, type TestDatabase } from '../../../test/test-database.ts';
import type { Schema } from '../../schema.ts';
import { SessionHistoryRepository, type Turn } from './history.ts';

const SESSION = '019aa1b2-c3d4-7e8f-9a0b-1c2d3e4f5a6b';
const MAX_BYTES = 100;

let database: TestDatabase;
let db: Kysely<Schema>;
let history: SessionHistoryRepository;

beforeAll(async () => {
  database = await startTestDatabase();
  db = database.db;
  history = new SessionHistoryRepository(db, MAX_BYTES);
});
afterAll(() => database?.[Symbol.asyncDispose]());
beforeEach(async () => {
  await db.deleteFrom('sessions').execute();
  await db.deleteFrom('tenants').execute();
  await insertTenants(db, 't');
  await insertSession(db, 't', SESSION);
});

/** A line of ten bytes. */
const line = (seq: number) => `{"s":${String(seq).padStart(3)}}\n`;
const turn = (firstSeq: number, lastSeq: number): Turn => ({
  sessionId: SESSION,
  generation: 1,
  firstSeq,
  lastSeq,
  frames: Buffer.from(
    Array.from({ length: lastSeq - firstSeq + 1 }, (_, index) => line(firstSeq + index)).join(''),
  ),
});
const kept = async () => {
  const state = await history.state(SESSION);
  const frames = state?.frames.toString() ?? '';
  return {
    first: state?.firstSeq,
    last: state?.lastSeq,
    seqs: [...frames.matchAll(/\d+/g)].map(([seq]) => Number(seq)),
  };
};
const range = (first: number, last: number) =>
  Array.from({ length: last - first + 1 }, (_, index) => first + index);

test('removes the oldest turns first and never exceeds the limit', async () => {
  expect(line(1)).toHaveLength(10);
  for (let first = 1; first <= 41; first += 4) await history.commit(turn(first, first + 3));
  expect(await kept()).toEqual({ first: 37, last: 44, seqs: range(37, 44) });
});

test('keeps the newest frames of a turn that alone exceeds the limit', async () => {
  await history.commit(turn(1, 4));
  await history.commit(turn(5, 29));
  expect(await kept()).toEqual({ first: 20, last: 29, seqs: range(20, 29) });
  await history.commit(turn(30, 30));
  expect(await kept()).toEqual({ first: 30, last: 30, seqs: [30] });
});

test('a turn with different bounds replaces the frames it repeats', async () => {
  await history.commit(turn(1, 2));
  await history.commit(turn(3, 4));
  await history.commit(turn(3, 6));
  expect(await kept()).toEqual({ first: 1, last: 6, seqs: range(1, 6) });
});

test('the stored frames have no gaps and no repeats', async () => {
  await history.commit(turn(1, 2));
  await history.commit(turn(5, 6));
  expect(await kept()).toEqual({ first: 5, last: 6, seqs: [5, 6] });
  await history.commit(turn(6, 8));
  expect(await kept()).toEqual({ first: 6, last: 8, seqs: range(6, 8) });
});

test('reports another generation as stale and another session as unknown_session', async () => {
  expect(await history.commit({ ...turn(1, 1), generation: 2 })).toBe('stale');
  const unknown = { ...turn(1, 1), sessionId: SESSION.replace('019a', '019b') };
  expect(await history.commit(unknown)).toBe('unknown_session');
  expect(await kept()).toEqual({ first: 1, last: 0, seqs: [] });
});

test('commits concurrent turns one at a time', async () => {
  await Promise.all(range(1, 5).map((seq) => history.commit(turn(seq, seq))));
  const { first, last, seqs } = await kept();
  expect(last).toBe(5);
  expect(seqs).toEqual(range(first ?? 0, 5));
});
