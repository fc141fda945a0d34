import { createHash } from 'node:crypto';
import type { ChunkUrls } from '@svc/contract';
import { openStore, type Store } from '@svc/store';
import type { WorkerDouble } from '@svc/worker-double';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { Harness, type StartedSession } from '../../../test/harness.ts';

const KEPT = [
  'session_frames',
  'session_chunks',
  'session_manifests',
  'agent_logs',
  'agent_log_parts',
];

let harness: Harness;
let store: Store;
let key: string;
let worker: WorkerDouble;
let session: StartedSession;

beforeAll(async () => {
  harness = await Harness.start();
  store = await openStore({
    url: harness.postgres.url,
    placement: { unreachableMs: 30_000, sandboxesPerTenant: 1 },
  });
  key = (await harness.signUp()).key;
  await harness.addBundle(key, 'llm', { LLM_API_KEY: 'k' });
});
afterAll(async () => {
  await store?.close();
  await harness?.[Symbol.asyncDispose]();
});
beforeEach(async () => {
  await harness.reset();
  worker = await harness.addWorker('w1');
  session = await harness.startSession(key);
});

const erase = (as = key, id = session.id) =>
  harness.call('DELETE', `/v1/sessions/${id}?erase=true`, { key: as });
const resume = () =>
  harness.call('POST', '/v1/sessions/resume', { key, json: { chat_session_id: session.id } });
const ask = (method: string, path: string, type: string, body: string) =>
  worker.ask(harness.plane.url, method, path, { headers: { 'content-type': type }, body });
const idOf = (name: string) => createHash('sha256').update(name).digest('base64url');
/** Announces the upload of a chunk. */
const announce = (name: string) =>
  ask(
    'POST',
    `/sessions/${session.id}/chunks/uploads`,
    'application/json',
    JSON.stringify({ generation: 1, chunks: [{ id: idOf(name), stored_bytes: 4 }] }),
  );
/** Stores files of one chunk, for a turn that names them. */
const putFiles = async (name: string) => {
  const announced = await announce(name);
  if (announced.status !== 200) return announced;
  const { chunks } = (await announced.json()) as ChunkUrls;
  for (const { url } of chunks) {
    const headers = { 'content-type': 'application/octet-stream' };
    await fetch(new URL(url, harness.plane.url), { method: 'PUT', headers, body: 'home' });
  }
  return ask(
    'POST',
    `/sessions/${session.id}/chunks/uploaded`,
    'application/json',
    JSON.stringify({ generation: 1, ids: [idOf(name)] }),
  );
};
const putLog = () =>
  ask('PUT', `/sandboxes/${session.vmId}/log?total_bytes=4`, 'application/octet-stream', 'log!');
const readLog = () => {
  worker.keptLogs.set(session.vmId, 'log!');
  return harness.call('GET', `/v1/sandboxes/${session.vmId}/logs`, { key });
};
const commit = (seq: number, filesId?: string) =>
  ask(
    'POST',
    `/sessions/${session.id}/turns`,
    'application/json',
    JSON.stringify({
      generation: 1,
      vm_id: session.vmId,
      first_seq: seq,
      last_seq: seq,
      frames: `{"seq":${seq},"data":"a secret"}\n`,
      conversation: 'a secret',
      files_id: filesId,
      ...(filesId === undefined ? {} : { manifest: { size_bytes: 4, chunks: [idOf(filesId)] } }),
    }),
  );
/** Everything that is still kept of sessions. */
const kept = async () => {
  const tables = await Promise.all(
    KEPT.map(async (table) => (await harness.sql.query(`select 1 from ${table}`)).rowCount),
  );
  const { rows } = await harness.sql.query('select conversation, files_id, app from sessions');
  return [...tables, ...rows.flatMap(Object.values)].filter(
    (value) => value !== 0 && value !== null,
  );
};
const saveTurn = async () => {
  expect((await putFiles('f1')).status).toBe(204);
  expect((await commit(1, 'f1')).status).toBe(204);
  expect((await putLog()).status).toBe(204);
  expect(await kept()).not.toEqual([]);
};

describe('DELETE with erase', () => {
  test('ends an active session, then erases what it keeps; its record stays', async () => {
    await saveTurn();
    const answer = await erase();
    expect(answer).toMatchObject({
      status: 200,
      body: { chat_session_id: session.id, status: 'completed', erased_at: expect.any(String) },
    });
    expect(worker.sandboxes.get(session.vmId)?.state).toBe('destroyed');
    expect(await kept()).toEqual([]);
    const record = await harness.session(key, session.id);
    expect(record).toMatchObject({ status: 'completed', erased_at: answer.body.erased_at });
    expect(await harness.dump()).not.toContain('a secret');
  });

  test('erases an ended session, and changes nothing when repeated', async () => {
    await saveTurn();
    await worker.event(harness.plane.url, worker.end(session.vmId, 'max_lifetime'));
    expect(await kept()).not.toEqual([]);
    const first = await erase();
    expect(first).toMatchObject({ status: 200, body: { status: 'expired' } });
    expect(await kept()).toEqual([]);
    expect((await erase()).body).toEqual(first.body);
    const plain = await harness.call('DELETE', `/v1/sessions/${session.id}`, { key });
    expect(plain.body).toEqual(first.body);
  });

  test('many at once have the effect of one', async () => {
    await saveTurn();
    const answers = await Promise.all(Array.from({ length: 8 }, () => erase()));
    for (const { status } of answers) expect([200, 409]).toContain(status);
    const erased = answers.filter(({ status }) => status === 200).map(({ body }) => body.erased_at);
    expect(new Set(erased).size).toBe(1);
    expect(await kept()).toEqual([]);
  });

  test('makes a resume 410', async () => {
    await erase();
    expect(await resume()).toMatchObject({ status: 410, body: { code: 'session_erased' } });
    expect(worker.placed).toHaveLength(1);
  });

  test('without erase keeps everything', async () => {
    await saveTurn();
    for (const query of ['', '?erase=false']) {
      const answer = await harness.call('DELETE', `/v1/sessions/${session.id}${query}`, { key });
      expect(answer.body).not.toHaveProperty('erased_at');
    }
    expect(await kept()).not.toEqual([]);
    expect((await resume()).status).toBe(200);
  });

  test('refuses a value that is neither true nor false', async () => {
    const answer = await harness.call('DELETE', `/v1/sessions/${session.id}?erase=1`, { key });
    expect(answer).toMatchObject({ status: 400, body: { code: 'validation_failed' } });
    expect(await harness.session(key, session.id)).toMatchObject({ status: 'active' });
  });

  test('of another tenant is 404 and erases nothing', async () => {
    await saveTurn();
    const stranger = await harness.signUp();
    const before = await kept();
    expect(await erase(stranger.key)).toMatchObject({ status: 404 });
    expect(await kept()).toEqual(before);
    expect(await harness.session(key, session.id)).toMatchObject({ status: 'active' });
  });

  test('refused while the worker does not answer is made up for once the session has ended', async () => {
    await saveTurn();
    worker.failures.set('destroy', 'shutting_down');
    expect(await erase()).toMatchObject({ status: 503, body: { code: 'worker_unreachable' } });
    expect(await resume()).toMatchObject({ status: 410, body: { code: 'session_erased' } });
    expect(await store.sessions.eraseRequested(10)).toBe(0);
    await worker.event(harness.plane.url, worker.end(session.vmId, 'deleted'));
    expect(await store.sessions.eraseRequested(10)).toBe(1);
    expect(await kept()).toEqual([]);
  });
});

describe('a worker that is late', () => {
  test('brings back neither a turn, nor files, nor a log', async () => {
    await saveTurn();
    expect((await putFiles('f2')).status).toBe(204);
    await erase();
    for (const answer of [await commit(2), await commit(2, 'f1'), await commit(2, 'f2')]) {
      expect(await answer.json()).toMatchObject({ status: 410, code: 'session_erased' });
    }
    expect(await (await putFiles('f3')).json()).toMatchObject({ code: 'session_erased' });
    expect((await putLog()).status).toBe(404);
    // A customer may still be shown what the worker has.
    expect(await readLog()).toMatchObject({ status: 200, body: { content: 'log!' } });
    expect(await kept()).toEqual([]);
  });

  test('commits its last turn before the erasure or not at all', async () => {
    for (let round = 0; round < 10; round += 1) {
      session = await harness.startSession(key);
      await saveTurn();
      // The worker saves while its sandbox ends, and after that.
      const late: Promise<Response>[] = [];
      worker.beforeDestroyed = async () => {
        late.push(commit(2, 'f1'), putFiles(`late-${round}`), commit(3));
      };
      const calls = [erase(), readLog(), commit(2), putFiles(`g-${round}`)] as const;
      const [answer] = await Promise.all(calls);
      expect(answer.status).toBe(200);
      late.push(commit(4), putFiles('h'), putLog());
      for (const { status } of await Promise.all(late)) expect([204, 404, 410]).toContain(status);
      expect(
        (await harness.sql.query(`select 1 from session_chunks where session_id = '${session.id}'`))
          .rowCount,
      ).toBe(0);
      expect((await harness.sql.query('select from agent_log_parts')).rowCount).toBe(0);
      const { rows } = await harness.sql.query(
        `select conversation, files_id, (select count(*)::int from session_frames f where f.session_id = s.session_id) as frames
         from sessions s where session_id = '${session.id}'`,
      );
      expect(rows).toEqual([{ conversation: null, files_id: null, frames: 0 }]);
    }
  });
});
