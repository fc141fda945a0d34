import { randomBytes, randomUUID } from 'node:crypto';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { CommitTurnRequest, SessionState } from '@svc/contract';
import {
  type ObjectStore,
  ObjectStoreError,
  openFsObjectStore,
  SignedUrls,
} from '@svc/object-store';
import { createLogger } from '@svc/service-kit';
import { FailureLogs } from '@svc/service-kit/logging';
import { type Store, TooManyUnusedChunks } from '@svc/store';
import type pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { startTestLedger, type TestLedger } from '../../../test/test-ledger.ts';
import { SessionHistory } from '../session-history.ts';
import { archiveNext } from './archive-transcripts.ts';
import { TranscriptChunks, type TranscriptOwner } from './transcript-chunks.ts';
import { TurnPacker } from './turn-packer.ts';

const KIB = 1024;
const GIB = 1024 * KIB * KIB;
/** So long that a slow machine never reaches it. */
const LONG_MS = 300_000;
const keys = { derive: async () => Buffer.alloc(32, 7) };
const logger = createLogger({ level: 'silent' });
const signal = new AbortController().signal;

let ledger: TestLedger;
let store: Store;
let sql: pg.Client;
let directory: string;
let real: ObjectStore;
/** The object store of the service, which tests break. */
let objects: Pick<ObjectStore, 'get' | 'head' | 'put'>;
let uploads = 0;
let now = 0;
let chunks: TranscriptChunks;
let history: SessionHistory;
let session: TranscriptOwner;

beforeAll(async () => {
  ledger = await startTestLedger({ sessionBytesPerTenant: GIB });
  ({ store, sql } = ledger);
  await sql.query(`insert into workers (worker_id, url, certificate, version, vcpu, memory_mib, disk_mib, templates)
    values ('w', '', '', '', 1, 1, 1, '[]')`);
  directory = await mkdtemp(join(tmpdir(), 'svc-objects-'));
  const urls = new SignedUrls([Buffer.alloc(32)], () => 'https://localhost');
  real = await openFsObjectStore({ directory, urls });
});
afterAll(async () => {
  await real?.[Symbol.asyncDispose]();
  await ledger?.[Symbol.asyncDispose]();
  await rm(directory, { recursive: true, force: true });
});
beforeEach(async () => {
  await sql.query('truncate sessions, sandboxes, object_deletions cascade');
  uploads = 0;
  now = 0;
  objects = {
    get: (...call) => real.get(...call),
    head: (...call) => real.head(...call),
    put: (...call) => {
      uploads += 1;
      return real.put(...call);
    },
  };
  session = await newSession();
  chunks = new TranscriptChunks({
    store,
    objects: {
      get: (...call) => objects.get(...call),
      head: (...call) => objects.head(...call),
      put: (...call) => objects.put(...call),
    },
    keys,
  });
  history = historyWith(LONG_MS);
});

const archiving = () => ({ store, chunks, logger, refusals: new FailureLogs() });
function historyWith(waitMs: number): SessionHistory {
  const packer = new TurnPacker({ chunks, logger, waitMs, now: () => now });
  return new SessionHistory({ store, transcripts: chunks, packer });
}
const vmOf = (sessionId: string) => `vm_${sessionId}`;
async function newSession(): Promise<TranscriptOwner> {
  const sessionId = randomUUID();
  await sql.query(
    `insert into sessions (session_id, tenant_id, status, vm_id, agent, app_id, set_id, template, vendor,
       model, secrets, user_id, expires_at)
     values ($1, 't', 'active', $2, 'deictic', 'a', 's', 'standard', 'openai', 'm', '{}', 'u', now())`,
    [sessionId, vmOf(sessionId)],
  );
  await sql.query(
    `insert into sandboxes (vm_id, tenant_id, worker_id, state, template, memory_mib, agent, session_id,
       session_generation, idle_timeout_seconds, max_lifetime_seconds)
     values ($2, 't', 'w', 'running', 'standard', 1, 'deictic', $1, 1, 1, 1)`,
    [sessionId, vmOf(sessionId)],
  );
  return { sessionId, tenantId: 't' };
}
/** Text of about this size that does not compress well. */
const text = (bytes: number) => randomBytes(Math.ceil(bytes / 2)).toString('hex');
/** Frames from `first` to `last`, of about `bytes` each. */
const frames = (first: number, last: number, bytes = 20) =>
  Array.from(
    { length: last - first + 1 },
    (_, index) => `${JSON.stringify({ seq: first + index, data: text(bytes) })}\n`,
  ).join('');
const commit = (
  changes: Pick<CommitTurnRequest, 'first_seq' | 'last_seq' | 'frames'> &
    Partial<CommitTurnRequest>,
  { sessionId } = session,
) => history.commit('w', sessionId, { generation: 1, vm_id: vmOf(sessionId), ...changes });
const state = ({ sessionId } = session): Promise<SessionState> => history.state('w', sessionId);
const end = () =>
  sql.query(`update sessions set status = 'completed', ended_at = now() - interval '11 minutes'`);
const one = async <T>(query: string, values: unknown[] = []): Promise<T> =>
  (await sql.query(query, values)).rows[0] as T;
/** The bytes that the rows of the session's transcript have, in all. */
const rowBytes = async () => {
  const { bytes } = await one<{ bytes: string }>(`
    select coalesce(sum(pg_column_size(conversation)), 0) + coalesce(sum(pg_column_size(conversation_chunks)), 0)
      + (select coalesce(sum(pg_column_size(f.*)), 0) from session_frames f)
      + (select coalesce(sum(pg_column_size(c.*)), 0) from session_chunks c) as bytes
    from sessions`);
  return Number(bytes);
};
const objectFiles = async () =>
  (await readdir(directory, { recursive: true, withFileTypes: true })).filter(
    (entry) => entry.isFile() && entry.parentPath.includes(session.sessionId),
  ).length;
const large = () => ({
  first_seq: 1,
  last_seq: 40,
  frames: frames(1, 40, 64 * KIB),
  conversation: text(3 * KIB * KIB),
});

describe('a large turn', () => {
  test('is in the object store, its rows are a few KiB, and a resume gets the same bytes', async () => {
    const turn = large();
    await commit(turn);
    expect(uploads).toBeGreaterThan(4);
    expect(await rowBytes()).toBeLessThan(16 * KIB);
    expect(await state()).toEqual({
      generation: 1,
      last_seq: 40,
      first_seq: 1,
      frames: turn.frames,
      conversation: turn.conversation,
    });
    // Short turns stay in the database, next to it.
    const before = uploads;
    const short = { first_seq: 41, last_seq: 42, frames: frames(41, 42) };
    await commit(short);
    expect(uploads).toBe(before);
    expect((await state()).frames).toBe(turn.frames + short.frames);
    expect((await state()).conversation).toBe(turn.conversation);
  });

  test('uploads only the end of a conversation that has grown, and gives up what it no longer contains', async () => {
    const conversation = text(3 * KIB * KIB);
    await commit({ first_seq: 1, last_seq: 0, frames: '', conversation });
    const first = uploads;
    const grown = conversation + text(KIB);
    await commit({ first_seq: 1, last_seq: 1, frames: frames(1, 1), conversation: grown });
    expect(uploads - first).toBeLessThanOrEqual(2);
    expect((await state()).conversation).toBe(grown);
    await commit({ first_seq: 2, last_seq: 2, frames: frames(2, 2), conversation: 'short' });
    expect((await state()).conversation).toBe('short');
    expect(await store.sessionChunks.removeUnused(0, 1_000)).toBe(uploads);
    expect(await store.objectDeletions.claim(1_000)).toHaveLength(uploads);
  });

  test('is counted as it is stored', async () => {
    await commit(large());
    const { kept, stored } = await one<{ kept: string; stored: string }>(
      `select kept_bytes as kept, (select sum(stored_bytes) from session_chunks) as stored from sessions`,
    );
    expect(Number(kept)).toBeGreaterThan(1_000 * KIB);
    expect(kept).toBe(stored);
  });

  test('that its control plane does not commit leaves only chunks that are collected', async () => {
    await chunks.store(session, Buffer.from(text(1_000 * KIB)), signal);
    const left = await objectFiles();
    expect(left).toBe(uploads);
    // Their grace period is not over.
    expect(await store.sessionChunks.removeUnused(3_600, 1_000)).toBe(0);
    expect(await store.sessionChunks.removeUnused(0, 1_000)).toBe(left);
    await real.delete(await store.objectDeletions.claim(1_000), signal);
    expect(await objectFiles()).toBe(0);
  });

  test('leaves nothing after an erasure', async () => {
    await commit(large());
    await end();
    await store.sessions.eraseEnded(session.sessionId);
    expect(await store.objectDeletions.claim(1_000)).toHaveLength(await objectFiles());
    expect(await one('select conversation_chunks as c, kept_bytes as k from sessions')).toEqual({
      c: null,
      k: '0',
    });
    expect(await one('select from session_frames')).toBeUndefined();
    expect(await one('select from session_chunks')).toBeUndefined();
  });

  test('is refused while the account has too many unused chunks, and the object store is not blamed for it', async () => {
    await sql.query(
      `insert into session_chunks (session_id, chunk_id, object_key, stored_bytes)
       values ($1, sha256('unused'), 'unused', $2)`,
      [session.sessionId, GIB],
    );
    const turn = large();
    await expect(commit(turn)).rejects.toMatchObject({ code: 'session_storage_full' });
    expect(uploads).toBe(0);
    expect(await state()).toEqual({ generation: 1, last_seq: 0, first_seq: 1, frames: '' });
    // What fits into the database needs no chunk.
    const short = { first_seq: 1, last_seq: 2, frames: frames(1, 2) };
    await commit(short);
    await sql.query(`delete from session_chunks where object_key = 'unused'`);
    await commit({ first_seq: 3, last_seq: 2, frames: '', conversation: turn.conversation });
    expect(uploads).toBeGreaterThan(0);
    expect(await state()).toMatchObject({ frames: short.frames, conversation: turn.conversation });
  });

  test('survives the files of a later turn', async () => {
    const turn = large();
    await commit(turn);
    const manifest = { size_bytes: 0, chunks: [] };
    await commit({ first_seq: 41, last_seq: 40, frames: '', files_id: 'f', manifest });
    expect(await store.sessionChunks.removeUnused(0, 1_000)).toBe(0);
    expect((await state()).conversation).toBe(turn.conversation);
  });
});

describe('while the object store', () => {
  const unavailable = async () => {
    uploads += 1;
    throw new ObjectStoreError('object_store_unavailable', 'down');
  };

  test('fails, large turns go to the database, and do not ask it again for a while', async () => {
    objects = { ...objects, put: unavailable };
    const turn = large();
    await commit(turn);
    const tried = uploads;
    expect(tried).toBeGreaterThan(0);
    expect(await state()).toMatchObject({ frames: turn.frames, conversation: turn.conversation });
    await commit({ ...turn, conversation: turn.conversation.toUpperCase() });
    expect(uploads).toBe(tried);
    expect((await state()).conversation).toBe(turn.conversation.toUpperCase());
    now += 30_001;
    objects = { ...objects, put: (...call) => real.put(...call) };
    await commit(turn);
    expect(await rowBytes()).toBeLessThan(16 * KIB);
    expect(await state()).toMatchObject({ frames: turn.frames, conversation: turn.conversation });
  });

  test('does not answer, a large turn is committed all the same', async () => {
    objects = { ...objects, put: () => new Promise<never>(() => undefined) };
    history = historyWith(50);
    const turn = large();
    await commit(turn);
    expect(await state()).toMatchObject({ frames: turn.frames, conversation: turn.conversation });
  });

  test('fails, a resume is told so, and it succeeds later', async () => {
    const turn = large();
    await commit(turn);
    const working = objects;
    objects = { ...objects, get: unavailable, head: unavailable };
    await expect(state()).rejects.toMatchObject({ code: 'object_store_unavailable' });
    await expect(chunks.check(session.sessionId)).rejects.toMatchObject({
      code: 'object_store_unavailable',
    });
    objects = working;
    await chunks.check(session.sessionId);
    expect((await state()).conversation).toBe(turn.conversation);
  });

  test('has lost an object, a resume never continues from less', async () => {
    await commit(large());
    const { key } = await one<{ key: string }>(
      'select object_key as key from session_chunks limit 1',
    );
    await real.delete([key], signal);
    await expect(state()).rejects.toMatchObject({ code: 'session_files_damaged' });
    await real.put(key, Buffer.from('other'), { size: 5, signal });
    await expect(state()).rejects.toMatchObject({ code: 'session_files_damaged' });
  });
});

describe('the transcript of an ended session', () => {
  const archiveAll = async () => {
    let count = 0;
    while (await archiveNext(archiving(), 600, signal)) count += 1;
    return count;
  };

  test('moves to the object store, once, with two control planes at work', async () => {
    const all = [session, await newSession(), await newSession(), await newSession()];
    for (const each of all) {
      for (const seq of [1, 2, 3]) {
        const turn = { first_seq: seq, last_seq: seq, frames: frames(seq, seq) };
        await commit({ ...turn, conversation: `said ${seq}` }, each);
      }
    }
    const before = await Promise.all(all.map(state));
    expect(await archiveAll()).toBe(0);
    await end();
    const counts = await Promise.all([archiveAll(), archiveAll()]);
    expect((counts[0] ?? 0) + (counts[1] ?? 0)).toBe(all.length);
    // The conversation, the newest turn, and the turns before it.
    expect(uploads).toBe(3 * all.length);
    expect(await archiveAll()).toBe(0);
    const inline = `select from sessions natural left join session_frames
      where conversation is not null or frames is not null`;
    expect(await one(inline)).toBeUndefined();
    expect(await Promise.all(all.map(state))).toEqual(before);
    expect(await store.sessionChunks.removeUnused(0, 1_000)).toBe(0);
  });

  test('gets a late turn, and one that is sent again, without gaps or repeats', async () => {
    const turns = [1, 2, 3].map((seq) => ({
      first_seq: seq,
      last_seq: seq,
      frames: frames(seq, seq),
      conversation: `said ${seq}`,
    }));
    for (const turn of turns.slice(0, 2)) await commit(turn);
    await end();
    await archiveAll();
    for (const turn of turns.slice(1)) await commit(turn);
    const expected = {
      first_seq: 1,
      frames: turns.map((turn) => turn.frames).join(''),
      conversation: 'said 3',
    };
    expect(await state()).toMatchObject(expected);
    expect(await archiveAll()).toBe(1);
    expect(await state()).toMatchObject(expected);
  });

  test('that changes while it moves is not replaced by what it was', async () => {
    const turn = { first_seq: 1, last_seq: 1, frames: frames(1, 1), conversation: 'one' };
    await commit(turn);
    await end();
    objects = {
      ...objects,
      put: async (...call) => {
        await commit({ ...turn, conversation: 'two' });
        await real.put(...call);
      },
    };
    await archiveNext(archiving(), 600, signal);
    expect((await state()).conversation).toBe('two');
    objects = { ...objects, put: (...call) => real.put(...call) };
    expect(await archiveAll()).toBe(1);
    expect((await state()).conversation).toBe('two');
  });

  test('of a session that is resumed stays readable, and its next turns follow', async () => {
    await commit({ first_seq: 1, last_seq: 2, frames: frames(1, 2), conversation: 'one' });
    await end();
    await archiveAll();
    const before = await state();
    await sql.query(`update sessions set status = 'active', ended_at = null`);
    const turn = { first_seq: 3, last_seq: 3, frames: frames(3, 3), conversation: 'two' };
    await commit(turn);
    expect(await state()).toMatchObject({
      first_seq: 1,
      frames: before.frames + turn.frames,
      conversation: 'two',
    });
  });

  test('is not held up by another that cannot be moved', async () => {
    const refused = session;
    const next = await newSession();
    const turn = { first_seq: 1, last_seq: 1, frames: frames(1, 1), conversation: 'one' };
    for (const each of [refused, next]) await commit(turn, each);
    await end();
    // Ended first, and has been tried in vain.
    await sql.query(
      `update sessions set ended_at = ended_at - interval '1 hour', archiving_until = now() - interval '1 second'
       where session_id = $1`,
      [refused.sessionId],
    );
    const refusing: Pick<TranscriptChunks, 'store'> = {
      store: async (owner, ...call) => {
        if (owner.sessionId === refused.sessionId) throw new TooManyUnusedChunks();
        return chunks.store(owner, ...call);
      },
    };
    const parts = { ...archiving(), chunks: refusing };
    const archived = async () =>
      (await sql.query('select session_id from sessions where archived_at is not null')).rows;
    expect(await archiveNext(parts, 600, signal)).toBe(true);
    expect(await archived()).toEqual([{ session_id: next.sessionId }]);
    // Its tenant alone is told to wait.
    expect(await archiveNext(parts, 600, signal)).toBe(true);
    expect(await archiveNext(parts, 600, signal)).toBe(false);
    expect(await archived()).toHaveLength(1);
  });

  test('logs those of one account that cannot be moved at most once a minute', async () => {
    const turn = { first_seq: 1, last_seq: 1, frames: frames(1, 1), conversation: 'one' };
    for (const each of [session, await newSession()]) await commit(turn, each);
    await end();
    const lines: string[] = [];
    const refusing = {
      ...archiving(),
      chunks: { store: () => Promise.reject(new TooManyUnusedChunks()) },
      logger: createLogger({
        level: 'info',
        pretty: false,
        destination: { write: (line) => void lines.push(line) },
      }),
    };
    for (const _ of [1, 2]) expect(await archiveNext(refusing, 600, signal)).toBe(true);
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([{ omitted: 0 }]);
  });

  test('is tried again after the claim of a control plane that failed', async () => {
    await commit({ first_seq: 1, last_seq: 1, frames: frames(1, 1), conversation: 'one' });
    await end();
    const working = objects;
    objects = {
      ...objects,
      put: async () => {
        throw new ObjectStoreError('object_store_unavailable', 'down');
      },
    };
    await expect(archiveAll()).rejects.toThrow('down');
    objects = working;
    expect(await archiveAll()).toBe(0);
    await sql.query('update sessions set archiving_until = now()');
    expect(await archiveAll()).toBe(1);
    expect((await state()).conversation).toBe('one');
  });
});
