import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import {
  CONTROL_PLANE_NAME,
  type CommitTurnRequest,
  LIMITS,
  RUNTIME_NAME,
  type SessionState,
} from '@svc/contract';
import { createTokenMinter } from '@svc/service-kit';
import { WorkerDouble } from '@svc/worker-double';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { CLUSTER_SECRET, Harness, type StartedSession } from '../../../test/harness.ts';

const MIB = 1024 * 1024;
const JSON_TYPE = { 'content-type': 'application/json' };
const BYTES_TYPE = { 'content-type': 'application/octet-stream' };

let harness: Harness;
let account: Awaited<ReturnType<Harness['signUp']>>;
let worker: WorkerDouble;
let other: WorkerDouble;
let session: StartedSession;

beforeAll(async () => {
  harness = await Harness.start();
  account = await harness.signUp();
  await harness.addBundle(account.key, 'llm', { LLM_API_KEY: 'k' });
});
afterAll(() => harness?.[Symbol.asyncDispose]());
beforeEach(async () => {
  await harness.reset();
  worker = await harness.addWorker('w1');
  other = await harness.addWorker('w2', (w) => {
    w.memoryMib = 1024;
  });
  session = await harness.startSession(account.key);
});

type As = Pick<WorkerDouble, 'ask'>;
const url = () => harness.plane.url;
const answerOf = async (response: Response) => {
  const text = await response.text();
  const body: Record<string, unknown> = text === '' ? {} : JSON.parse(text);
  return { status: response.status, code: body.code, body };
};
const turn = (changes: Partial<CommitTurnRequest> = {}): CommitTurnRequest => ({
  generation: 1,
  vm_id: session.vmId,
  first_seq: 1,
  last_seq: 2,
  frames: '{"seq":1}\n{"seq":2}\n',
  ...changes,
});
const commit = async (changes: Partial<CommitTurnRequest> = {}, as: As = worker, id = session.id) =>
  answerOf(
    await as.ask(url(), 'POST', `/sessions/${id}/turns`, {
      headers: JSON_TYPE,
      body: JSON.stringify(turn(changes)),
    }),
  );
const stateOf = async (as: As = worker, id = session.id) =>
  answerOf(await as.ask(url(), 'GET', `/sessions/${id}/state`));
const state = async () => (await stateOf()).body as unknown as SessionState;
const putFiles = async (
  filesId: string,
  bytes: NonNullable<RequestInit['body']>,
  as: As = worker,
  generation = 1,
) =>
  answerOf(
    await as.ask(
      url(),
      'PUT',
      `/sessions/${session.id}/files/${filesId}?generation=${generation}`,
      {
        headers: BYTES_TYPE,
        body: bytes,
      },
    ),
  );
const getFiles = (filesId: string, as: As = worker) =>
  as.ask(url(), 'GET', `/sessions/${session.id}/files/${filesId}`);
const resume = () =>
  harness.call('POST', '/v1/sessions/resume', {
    key: account.key,
    json: { chat_session_id: session.id },
  });
const bytesOf = (length: number, fill: number): Uint8Array<ArrayBuffer> =>
  new Uint8Array(length).fill(fill);

describe('the route of a session', () => {
  const runtime = () => new WorkerDouble(RUNTIME_NAME, CLUSTER_SECRET);
  const route = async (as: As, id = session.id) =>
    answerOf(await as.ask(url(), 'GET', `/sessions/${id}`));

  test('tells runtime hosts its owner and its worker', async () => {
    const { status, body } = await route(runtime());
    expect(status).toBe(200);
    const { rows } = await harness.sql.query(
      `select worker_id, url, certificate from workers where worker_id = 'w1'`,
    );
    expect(body).toEqual({
      chat_session_id: session.id,
      tenant_id: account.tenantId,
      user_id: account.tenantId,
      app_id: 'my-app',
      set_id: 'default',
      cua_enabled: false,
      status: 'active',
      expires_at: session.access.expires_at,
      worker: { ...rows[0], vm_id: session.vmId },
    });
  });

  test('names no worker once the sandbox has ended', async () => {
    await worker.event(url(), worker.end(session.vmId, 'idle_timeout'));
    const { body } = await route(runtime());
    expect(body).toMatchObject({ status: 'completed' });
    expect(body).not.toHaveProperty('worker');
  });

  test.each(['none', '%00', '00000000-0000-7000-8000-000000000000'])(
    'of a session called %s is 404',
    async (id) => {
      expect(await route(runtime(), id)).toMatchObject({ status: 404, code: 'session_not_found' });
    },
  );

  test('is served to runtime hosts only', async () => {
    expect(await route(worker)).toMatchObject({ status: 404, code: 'session_not_found' });
    expect(
      (await harness.plane.url) && (await fetch(`${url()}/internal/v1/sessions/x`)).status,
    ).toBe(401);
  });
});

describe('the state of a session', () => {
  test('is empty initially', async () => {
    expect(await state()).toEqual({ generation: 1, last_seq: 0, frames: '', first_seq: 1 });
  });

  test('contains the committed turns', async () => {
    const nasty = 'a\0\ud83d\ude00';
    expect((await commit({ conversation: 'one' })).status).toBe(204);
    expect((await commit({ first_seq: 3, last_seq: 3, frames: '{"seq":3}' })).status).toBe(204);
    const end = { first_seq: 4, last_seq: 3, frames: '', conversation: nasty };
    expect((await commit(end)).status).toBe(204);
    expect(await state()).toEqual({
      generation: 1,
      last_seq: 3,
      conversation: nasty,
      frames: '{"seq":1}\n{"seq":2}\n{"seq":3}\n',
      first_seq: 1,
    });
  });

  test('does not change when a turn is repeated, even late', async () => {
    for (let time = 0; time < 2; time += 1) await commit({ conversation: 'one' });
    const second = { first_seq: 3, last_seq: 3, frames: '{"seq":3}\n', conversation: 'two' };
    await commit(second);
    const before = await state();
    for (const late of [{ conversation: 'one' }, second]) {
      expect((await commit(late)).status).toBe(204);
      expect(await state()).toEqual(before);
    }
  });

  test('continues from the newest turn after a resume, and the old sandbox can no longer write', async () => {
    await commit({ conversation: 'one' });
    expect((await resume()).status).toBe(200);
    const stale = { first_seq: 3, last_seq: 3, frames: '{"seq":3}\n', conversation: 'late' };
    expect(await commit(stale)).toMatchObject({ status: 409, code: 'stale_generation' });
    expect(await putFiles('f', 'x')).toMatchObject({ status: 409, code: 'stale_generation' });
    expect(await state()).toMatchObject({ generation: 2, last_seq: 2, conversation: 'one' });
    const vm_id = String((await harness.session(account.key, session.id)).vm_id);
    expect((await commit({ ...stale, vm_id, generation: 2 })).status).toBe(204);
    expect(await state()).toMatchObject({ last_seq: 3, conversation: 'late' });
  });

  test('can still be saved when the sandbox has ended', async () => {
    await worker.event(url(), worker.end(session.vmId, 'worker_lost'));
    expect((await commit({ conversation: 'last words' })).status).toBe(204);
    expect((await stateOf()).status).toBe(404);
    await resume();
    expect(await state()).toMatchObject({ conversation: 'last words' });
  });

  test('is served to the worker of its sandbox only', async () => {
    await commit();
    const runtime = new WorkerDouble(RUNTIME_NAME, CLUSTER_SECRET);
    for (const stranger of [other, runtime]) {
      for (const answer of [
        await stateOf(stranger),
        await commit({}, stranger),
        await putFiles('f', 'x', stranger),
        await answerOf(await getFiles('f', stranger)),
      ]) {
        expect(answer).toMatchObject({ status: 404, code: 'session_not_found' });
      }
    }
  });

  test('is separate from that of another session on the same worker', async () => {
    const second = await harness.startSession(account.key);
    const answer = await commit({ vm_id: session.vmId }, worker, second.id);
    expect(answer).toMatchObject({ status: 404, code: 'session_not_found' });
    for (const changes of [{ vm_id: 'vm_none' }, { vm_id: '\0' }, { generation: 2 }]) {
      expect(await commit(changes)).toMatchObject({ status: 404, code: 'session_not_found' });
    }
    for (const id of ['none', '%00']) {
      expect(await stateOf(worker, id)).toMatchObject({ status: 404, code: 'session_not_found' });
      expect((await commit({}, worker, id)).status).toBe(404);
    }
  });

  test('rejects a turn with contradictory numbers', async () => {
    expect(await commit({ first_seq: 5, last_seq: 3 })).toMatchObject({ status: 400 });
  });
});

describe('files of a session', () => {
  test('are returned unchanged once a turn has named them', async () => {
    const bytes = bytesOf(2 * MIB + 17, 7);
    expect((await putFiles('f1', bytes)).status).toBe(204);
    expect((await commit({ files_id: 'f1' })).status).toBe(204);
    expect(await state()).toMatchObject({ files_id: 'f1' });
    const answer = await getFiles('f1');
    expect(answer.headers.get('content-length')).toBe(String(bytes.length));
    expect(answer.headers.get('content-type')).toBe('application/octet-stream');
    expect(Buffer.compare(Buffer.from(await answer.arrayBuffer()), bytes)).toBe(0);
  });

  test('are replaced by those of the next turn', async () => {
    await putFiles('f1', 'one');
    await commit({ files_id: 'f1' });
    await putFiles('f2', 'two');
    await commit({ first_seq: 3, last_seq: 3, frames: '{}\n', files_id: 'f2' });
    expect((await getFiles('f1')).status).toBe(404);
    expect(await (await getFiles('f2')).text()).toBe('two');
    expect((await harness.sql.query('select 1 from session_uploads')).rowCount).toBe(1);
    await commit({ first_seq: 4, last_seq: 4, frames: '{}\n' });
    expect(await state()).toMatchObject({ files_id: 'f2' });
  });

  test('of one id never change', async () => {
    await Promise.all([putFiles('f1', 'one'), putFiles('f1', 'one')]);
    expect((await putFiles('f1', 'other')).status).toBe(204);
    expect(await (await getFiles('f1')).text()).toBe('one');
    expect((await harness.sql.query('select 1 from session_uploads')).rowCount).toBe(1);
  });

  test('that were not uploaded cannot be named, and such a turn is not committed', async () => {
    const answer = await commit({ files_id: 'none', conversation: 'x' });
    expect(answer).toMatchObject({ status: 404, code: 'file_not_found' });
    expect(await state()).toEqual({ generation: 1, last_seq: 0, frames: '', first_seq: 1 });
    expect((await getFiles('none')).status).toBe(404);
  });

  test('whose upload is cut off are not stored', async () => {
    const controller = new AbortController();
    let sent = 0;
    const body = new ReadableStream({
      pull(stream) {
        sent += 1;
        if (sent <= 3) stream.enqueue(bytesOf(MIB, 1));
      },
    });
    const uploads = async () => (await harness.sql.query('select 1 from session_uploads')).rowCount;
    const path = `/sessions/${session.id}/files/f1?generation=1`;
    const request = { headers: BYTES_TYPE, body, signal: controller.signal };
    const outcome = expect(worker.ask(url(), 'PUT', path, request)).rejects.toThrow();
    // Otherwise the test would pass without an upload.
    await expect.poll(uploads).toBe(1);
    controller.abort();
    await outcome;
    await expect.poll(uploads).toBe(0);
    expect((await harness.sql.query('select 1 from session_pieces')).rowCount).toBe(0);
    expect((await getFiles('f1')).status).toBe(404);
  });

  test('that are declared too large are rejected before they are read', async () => {
    const token = await createTokenMinter(CLUSTER_SECRET, 'w1')(CONTROL_PLANE_NAME);
    const request = httpRequest(
      `${url()}/internal/v1/sessions/${session.id}/files/f1?generation=1`,
      {
        method: 'PUT',
        headers: {
          ...BYTES_TYPE,
          authorization: `Bearer ${token}`,
          'content-length': LIMITS.sessionFilesBytes + 1,
        },
      },
    );
    request.flushHeaders();
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    request.destroy();
    expect(response.statusCode).toBe(413);
    expect((await harness.sql.query('select 1 from session_uploads')).rowCount).toBe(0);
  });

  test.each(['..%2fx', '%00', 'a b'])('of the invalid id %s are 404', async (filesId) => {
    expect((await putFiles(filesId, 'x')).status).toBe(404);
  });

  test('that no turn has named are removed, others are not', async () => {
    await putFiles('f1', 'one');
    await commit({ files_id: 'f1' });
    await putFiles('f2', 'two');
    await harness.sql.query(`update session_uploads set created_at = now() - interval '2 hours'`);
    // A starting control plane sweeps at once.
    await harness.restart();
    await expect.poll(async () => (await getFiles('f2')).status).toBe(404);
    expect(await (await getFiles('f1')).text()).toBe('one');
  });
});
