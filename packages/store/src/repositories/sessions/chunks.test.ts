import { randomBytes, randomUUID } from 'node:crypto';
import { type Kysely, sql } from 'kysely';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { insertSession } from '../../../test/insert-session.ts';
import { insertTenants } from '../../../test/insert-tenants.ts';
import { startTestDatabase, type TestDatabase } from '../../../test/test-database.ts';
import type { Schema } from '../../schema.ts';
import {
  ChunkRepository,
  SESSION_CHUNKS,
  TooManyUnusedChunks,
} from '../chunks/chunk-repository.ts';
import { ObjectDeletionRepository } from '../object-deletions.ts';
import { eraseEnded } from './erasure.ts';
import { SessionHistoryRepository, type Turn } from './history.ts';
import { takeManifest } from './manifests.ts';

const HOUR = 3_600;

let database: TestDatabase;
let db: Kysely<Schema>;
let history: SessionHistoryRepository;
let chunks: ChunkRepository;
let deletions: ObjectDeletionRepository;
let session: string;

beforeAll(async () => {
  database = await startTestDatabase();
  db = database.db;
  await insertTenants(db, 't', 'other');
  history = new SessionHistoryRepository(db, 1_000);
  chunks = new ChunkRepository(db, SESSION_CHUNKS);
  deletions = new ObjectDeletionRepository(db);
});
afterAll(() => database?.[Symbol.asyncDispose]());
beforeEach(async () => {
  await db.deleteFrom('object_deletions').execute();
  await db.deleteFrom('sessions').execute();
  session = await newSession();
});

const newSession = () => insertSession(db, 't');
const newIds = (count: number) => Array.from({ length: count }, () => randomBytes(32));
/** Stores chunks as a save does. */
async function store(ids: readonly Buffer[], owner = session): Promise<void> {
  const announced = await chunks.announce(
    owner,
    ids.map((id) => ({ id, objectKey: `sessions/${owner}/${randomUUID()}`, storedBytes: 10 })),
  );
  await chunks.confirm(announced.map(({ objectKey }) => objectKey));
}
let seq = 0;
const turn = (chunkIds: readonly Buffer[], owner = session): Turn => {
  seq += 1;
  return {
    sessionId: owner,
    generation: 1,
    firstSeq: seq,
    lastSeq: seq,
    frames: Buffer.from('{}\n'),
    files: { filesId: `f${seq}`, sizeBytes: 100 * chunkIds.length, chunkIds },
  };
};
const age = () =>
  sql`update session_chunks set unused_since = unused_since - interval '2 hours'`.execute(db);
const stored = async () => {
  const { rows } = await sql<{ id: Buffer }>`
    select chunk_id as id from session_chunks order by chunk_id`.execute(db);
  return rows.map(({ id }) => id);
};
const sorted = (ids: readonly Buffer[]) => [...ids].sort(Buffer.compare);
const keptBytes = async () =>
  Number(
    (await db.selectFrom('sessions').select('kept_bytes').executeTakeFirstOrThrow()).kept_bytes,
  );

describe('a turn', () => {
  test('names chunks in order, also repeatedly', async () => {
    const [a, b] = newIds(2) as [Buffer, Buffer];
    await store([a, b]);
    expect(await history.commit(turn([b, a, b]))).toBe('committed');
    expect((await history.state(session))?.manifest).toEqual({
      filesId: `f${seq}`,
      sizeBytes: 300,
      chunkIds: [b, a, b],
    });
  });

  test('is refused, and changes nothing, when a chunk is not stored', async () => {
    const [a, b, announced] = newIds(3) as [Buffer, Buffer, Buffer];
    await store([a]);
    await history.commit(turn([a]));
    const before = await history.state(session);
    await chunks.announce(session, [{ id: announced, objectKey: 'k', storedBytes: 1 }]);
    for (const missing of [b, announced]) {
      expect(await history.commit(turn([a, missing]))).toBe('unknown_files');
    }
    expect(await history.state(session)).toEqual(before);
    await age();
    await chunks.removeUnused(HOUR, 100);
    expect(await stored()).toEqual([a]);
  });

  test('cannot name the chunks of another session', async () => {
    const ids = newIds(1);
    await store(ids, await newSession());
    expect(await history.commit(turn(ids))).toBe('unknown_files');
  });

  test('counts what the session keeps', async () => {
    const [a, b, c] = newIds(3) as [Buffer, Buffer, Buffer];
    await store([a, b, c]);
    await history.commit({ ...turn([a, b, b]), conversation: Buffer.from('12345') });
    expect(await keptBytes()).toBe(10 + 10 + 5 + 3);
    await history.commit(turn([c]));
    expect(await keptBytes()).toBe(10 + 5 + 3 + 3);
  });

  test('writes only the rows of chunks that begin or cease to be used', async () => {
    const ids = newIds(50);
    const [next] = newIds(1) as [Buffer];
    await store([...ids, next]);
    await history.commit(turn(ids));
    const versions = async () => {
      const { rows } = await sql<{ id: Buffer; xmin: string }>`
        select chunk_id as id, xmin::text from session_chunks`.execute(db);
      return new Map(rows.map(({ id, xmin }) => [id.toString('hex'), xmin]));
    };
    const before = await versions();
    await history.commit(turn([...ids.slice(1), next]));
    const changed = [...(await versions())].filter(([id, xmin]) => before.get(id) !== xmin);
    expect(changed.map(([id]) => id).sort()).toEqual(
      [ids[0], next].map((id) => id?.toString('hex')).sort(),
    );
  });
});

describe('unused chunks', () => {
  test('are removed after the grace period, with their objects; used ones are not', async () => {
    const [used, replaced, announced] = newIds(3) as [Buffer, Buffer, Buffer];
    await store([used, replaced]);
    await history.commit(turn([used, replaced]));
    await history.commit(turn([used]));
    await chunks.announce(session, [{ id: announced, objectKey: 'k', storedBytes: 1 }]);
    expect(await chunks.removeUnused(HOUR, 100)).toBe(0);
    await age();
    expect(await chunks.removeUnused(HOUR, 1)).toBe(1);
    expect(await chunks.removeUnused(HOUR, 100)).toBe(1);
    expect(await stored()).toEqual([used]);
    expect(await deletions.claim(10)).toHaveLength(2);
  });

  test('stay when a save asks for them, and when a turn names them', async () => {
    const [renewed, named, other] = newIds(3) as [Buffer, Buffer, Buffer];
    await store([renewed, named, other]);
    await age();
    expect(await chunks.renew(session, [renewed, ...newIds(1)])).toEqual([renewed]);
    await history.commit(turn([named]));
    expect(await chunks.removeUnused(HOUR, 100)).toBe(1);
    expect(await stored()).toEqual(sorted([renewed, named]));
  });

  test('get another object when they are uploaded again after their removal', async () => {
    const ids = newIds(1);
    await store(ids);
    const [before] = await chunks.find(session, ids);
    await age();
    await chunks.removeUnused(HOUR, 100);
    expect(await chunks.renew(session, ids)).toEqual([]);
    await store(ids);
    const [after] = await chunks.find(session, ids);
    expect(await deletions.claim(10)).toEqual([before?.objectKey]);
    expect(after?.objectKey).not.toBe(before?.objectKey);
  });

  test('are either committed or removed when a turn and the removal race', async () => {
    for (let round = 0; round < 20; round += 1) {
      const ids = newIds(40);
      await store(ids);
      await age();
      const [outcome] = await Promise.all([
        history.commit(turn(ids)),
        chunks.removeUnused(HOUR, 7),
        chunks.removeUnused(HOUR, 100),
      ]);
      const state = await history.state(session);
      const known = await chunks.find(session, state?.manifest?.chunkIds ?? []);
      // Whatever the order, every chunk of the committed files is still there.
      expect(known).toHaveLength(state?.manifest?.chunkIds.length ?? 0);
      if (outcome === 'committed') expect(state?.manifest?.chunkIds).toEqual(ids);
      else expect(outcome).toBe('unknown_files');
    }
  });

  test('wait for a turn that is about to name them', async () => {
    const ids = newIds(3);
    await store(ids);
    await age();
    const reached = Promise.withResolvers<void>();
    const gate = Promise.withResolvers<void>();
    const committing = db.transaction().execute(async (transaction) => {
      await sql`select from sessions where session_id = ${session} for no key update`.execute(
        transaction,
      );
      const files = { filesId: 'f', sizeBytes: 1, chunkIds: ids };
      expect(await takeManifest(transaction, session, files)).toBe(true);
      reached.resolve();
      await gate.promise;
    });
    await reached.promise;
    expect(await chunks.removeUnused(HOUR, 100)).toBe(0);
    gate.resolve();
    await committing;
    expect(await chunks.removeUnused(HOUR, 100)).toBe(0);
    expect(await stored()).toEqual(sorted(ids));
  });
});

describe('an announced upload', () => {
  test('keeps its object when it is announced again, with the new size', async () => {
    const [id] = newIds(1) as [Buffer];
    const first = await chunks.announce(session, [{ id, objectKey: 'k1', storedBytes: 1 }]);
    const again = await chunks.announce(session, [{ id, objectKey: 'k2', storedBytes: 2 }]);
    expect(again).toEqual(first);
    expect(await chunks.unconfirmed(session, [id])).toEqual([
      { id, objectKey: 'k1', storedBytes: 2 },
    ]);
    expect(await chunks.find(session, [id])).toEqual([]);
    await chunks.confirm(['k1']);
    expect(await chunks.announce(session, [{ id, objectKey: 'k3', storedBytes: 3 }])).toEqual([]);
    expect(await deletions.inUse(['k1', 'k2', 'k3'])).toEqual(['k1']);
  });
});

describe('a lost object', () => {
  test.each([
    { chunk: 'a used chunk', isUsed: true },
    { chunk: 'an unused chunk', isUsed: false },
  ])('of $chunk is uploaded again by the next save', async ({ isUsed }) => {
    const ids = newIds(2) as [Buffer, Buffer];
    const [lost, kept] = ids;
    await store(ids);
    if (isUsed) await history.commit(turn(ids));
    const [found] = await chunks.find(session, [lost]);
    const objectKey = String(found?.objectKey);
    expect(await chunks.noteLost([objectKey], HOUR)).toBe(0);
    await sql`update session_chunks set stored_at = now() - interval '2 hours'`.execute(db);
    expect(await chunks.noteLost([objectKey], HOUR)).toBe(1);
    expect(await chunks.renew(session, ids)).toEqual([kept]);
    const again = { id: lost, objectKey: 'other', storedBytes: 11 };
    expect(await chunks.announce(session, [again])).toEqual([{ id: lost, objectKey }]);
    expect(await chunks.unconfirmed(session, ids)).toEqual([{ ...again, objectKey }]);
    await chunks.confirm([objectKey]);
    expect(await chunks.unconfirmed(session, ids)).toEqual([]);
    expect(sorted(await chunks.renew(session, ids))).toEqual(sorted(ids));
    expect(await chunks.announce(session, [again])).toEqual([]);
    // What a turn used is still used, and the rest is still removed in time.
    await age();
    expect(await chunks.removeUnused(HOUR, 100)).toBe(isUsed ? 0 : 2);
  });
});

describe('unused chunks of a tenant', () => {
  /** Of 10 small chunks. */
  const MOST = 10 * 4096;
  /** As of two control planes. */
  const limited = () => [0, 1].map(() => new ChunkRepository(db, SESSION_CHUNKS, MOST));
  const announce = (ids: readonly Buffer[], owner = session, by = limited()[0]) =>
    by?.announce(
      owner,
      ids.map((id) => ({ id, objectKey: randomUUID(), storedBytes: 10 })),
    );

  test('have a limit, until they are used or removed', async () => {
    const other = await newSession();
    const ids = newIds(10);
    await announce(ids.slice(0, 5));
    await announce(ids.slice(5), other);
    for (const owner of [session, other]) {
      await expect(announce(newIds(1), owner)).rejects.toThrow(TooManyUnusedChunks);
    }
    // Neither what is announced again nor another tenant is refused.
    expect(await announce(ids.slice(0, 5))).toHaveLength(5);
    expect(await announce(newIds(10), await insertSession(db, 'other'))).toHaveLength(10);
    await store(ids.slice(0, 5));
    await history.commit(turn(ids.slice(0, 5)));
    expect(await announce(newIds(5))).toHaveLength(5);
    await expect(announce(newIds(1))).rejects.toThrow(TooManyUnusedChunks);
    await age();
    await chunks.removeUnused(HOUR, 100);
    expect(await announce(newIds(10))).toHaveLength(10);
  });

  test('have a limit for all control planes together', async () => {
    const calls = Array.from({ length: 20 }, (_, at) =>
      announce(newIds(1), session, limited()[at % 2]),
    );
    const outcomes = await Promise.allSettled(calls);
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(10);
  });

  test('of one session leave a part of the limit to the others', async () => {
    const limits = new ChunkRepository(db, SESSION_CHUNKS, MOST, 2 * 4096);
    const greedy = async (owner: string) => {
      let accepted = 0;
      for (let time = 0; time < 12; time += 1) {
        const announced = announce(newIds(1), owner, limits);
        const error = await announced?.then(
          () => undefined,
          (reason: unknown) => reason,
        );
        if (error === undefined) accepted += 1;
        else expect(error).toBeInstanceOf(TooManyUnusedChunks);
      }
      return accepted;
    };
    const taken: number[] = [];
    for (const owner of [session, await newSession(), await newSession()]) {
      taken.push(await greedy(owner));
    }
    // Half of what is left, or a part of one's own.
    expect(taken).toEqual([5, 2, 2]);
    expect(await announce(newIds(1), await newSession(), limits)).toHaveLength(1);
  });
});

test('erasing a session gives up all its objects, and no others, and takes no more chunks', async () => {
  const [ids, others] = [newIds(2), newIds(2)];
  const other = await newSession();
  await store(ids);
  await store(others, other);
  await history.commit(turn(ids));
  await history.commit(turn(others, other));
  await sql`update sessions set status = 'completed', ended_at = now() where session_id = ${session}`.execute(
    db,
  );
  await eraseEnded(db, session);
  expect(await history.state(session)).toMatchObject({ filesId: undefined, manifest: undefined });
  expect(await stored()).toEqual(sorted(others));
  expect(await deletions.claim(10)).toHaveLength(2);
  expect(
    await chunks.announce(session, [{ id: Buffer.alloc(32), objectKey: 'k', storedBytes: 1 }]),
  ).toEqual([]);
  expect(await stored()).toEqual(sorted(others));
});
