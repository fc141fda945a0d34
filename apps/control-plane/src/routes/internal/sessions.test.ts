import { randomUUID } from 'node:crypto';
import {
  type CommitTurnRequest,
  LIMITS,
  type ReserveFramesRequest,
  SESSION_TOKEN_HEADER,
  type SessionState,
} from '@svc/contract';
import {
  createHopTokenVerifier,
  Secret,
  type SessionIdentity,
  SessionTokens,
  sessionTokenKey,
} from '@svc/service-kit';
import { ComponentDouble, controlPlaneKeys, type WorkerDouble } from '@svc/worker-double';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { askAsWorker } from '../../../test/ask-as-worker.ts';
import { CLUSTER_SECRET, Harness, type StartedSession } from '../../../test/harness.ts';

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
const ask = (method: string, path: string, body?: object, as: As = worker) =>
  askAsWorker(as, url(), method, path, body);
const turn = (changes: Partial<CommitTurnRequest> = {}): CommitTurnRequest => ({
  generation: 1,
  vm_id: session.vmId,
  first_seq: 1,
  last_seq: 2,
  frames: '{"seq":1}\n{"seq":2}\n',
  ...changes,
});
const commit = (changes: Partial<CommitTurnRequest> = {}, as: As = worker, id = session.id) =>
  ask('POST', `/sessions/${id}/turns`, turn(changes), as);
const stateOf = (as: As = worker, id = session.id) =>
  ask('GET', `/sessions/${id}/state`, undefined, as);
const state = async () => (await stateOf()).body as unknown as SessionState;
const askMissing = (as: As = worker, generation = 1) =>
  ask('POST', `/sessions/${session.id}/chunks/missing`, { generation, ids: ['A'.repeat(43)] }, as);
const getFiles = (filesId: string, as: As) =>
  ask('GET', `/sessions/${session.id}/files/${filesId}`, undefined, as);
const resume = () =>
  harness.call('POST', '/v1/sessions/resume', {
    key: account.key,
    json: { chat_session_id: session.id },
  });
describe('the route of a session', () => {
  const runtime = new ComponentDouble('runtime', 'r1', CLUSTER_SECRET);
  const tokens = new SessionTokens([sessionTokenKey(CLUSTER_SECRET)]);
  const claims = (changes: Partial<SessionIdentity> = {}) => ({
    user_id: account.tenantId,
    app_id: 'my-app',
    set_id: 'default',
    chat_session_id: session.id,
    cua_enabled: false,
    ...changes,
  });
  const tokenFor = (changes: Partial<SessionIdentity> = {}, lifetimeMs = 60_000) =>
    tokens.mint(claims(changes), new Date(Date.now() + lifetimeMs));
  const route = async (
    token: string | undefined = String(session.access.jwt),
    id = session.id,
    as: As = runtime,
  ) => {
    const headers = token === '' ? {} : { [SESSION_TOKEN_HEADER]: token };
    const answer = await as.ask(url(), 'GET', `/sessions/${id}`, { headers });
    return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
  };

  test('tells runtime hosts its owner and its worker', async () => {
    const { status, body } = await route();
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
      worker: { ...rows[0], vm_id: session.vmId, token: expect.any(String) },
    });
    const { token } = body.worker as { token: string };
    const verify = createHopTokenVerifier(controlPlaneKeys(CLUSTER_SECRET), 'w1');
    expect(await verify(token)).toMatchObject(claims());
  });

  test('names no worker once the sandbox has ended', async () => {
    await worker.event(url(), worker.end(session.vmId, 'idle_timeout'));
    const { body } = await route();
    expect(body).toMatchObject({ status: 'completed' });
    expect(body).not.toHaveProperty('worker');
  });

  test('names no worker that an operator has removed', async () => {
    await harness.sql.query(`update workers set removed_at = now() where worker_id = 'w1'`);
    expect((await route()).body).not.toHaveProperty('worker');
  });

  test.each(['none', '%00', '00000000-0000-7000-8000-000000000000'])(
    'of a session called %s is 401, as with an invalid token',
    async (id) => {
      const token = await tokenFor({ chat_session_id: id });
      const refused = { status: 401, body: { code: 'unauthorized' } };
      expect(await route(token, id)).toMatchObject(refused);
      expect(await route('x.y.z', id)).toMatchObject(refused);
    },
  );

  test('needs the token of a client that may attach', async () => {
    const foreign = new SessionTokens([sessionTokenKey(new Secret('x'.repeat(40)))]);
    const soon = new Date(Date.now() + 60_000);
    for (const token of [
      '',
      'x.y.z',
      await tokenFor({}, -60_000),
      await foreign.mint(claims(), soon),
    ]) {
      expect(await route(token)).toMatchObject({ status: 401, body: { code: 'unauthorized' } });
    }
    const other = await tokenFor({ chat_session_id: '00000000-0000-7000-8000-000000000000' });
    expect(await route(other)).toMatchObject({
      status: 403,
      body: { code: 'session_token_mismatch' },
    });
    expect(await route(await tokenFor({ user_id: 'usr_else' }))).toMatchObject({
      status: 403,
      body: { code: 'session_of_another_tenant' },
    });
  });

  test('is served to runtime hosts only', async () => {
    const refused = { status: 401, body: { code: 'component_unauthorized' } };
    expect(await route(undefined, session.id, worker)).toMatchObject(refused);
    expect((await fetch(`${url()}/internal/v1/sessions/x`)).status).toBe(401);
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
    expect(await askMissing()).toMatchObject({ status: 409, code: 'stale_generation' });
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
    const runtime = new ComponentDouble('runtime', 'r1', CLUSTER_SECRET);
    for (const [stranger, status, code] of [
      [other, 404, 'session_not_found'],
      [runtime, 401, 'component_unauthorized'],
    ] as const) {
      for (const answer of [
        await stateOf(stranger),
        await commit({}, stranger),
        await askMissing(stranger),
        await getFiles('f', stranger),
      ]) {
        expect(answer).toMatchObject({ status, code });
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

describe('the numbers of frames', () => {
  const BLOCK = LIMITS.frameNumbersBlock;
  const [first, second, third] = [randomUUID(), randomUUID(), randomUUID()];
  const reserve = (changes: Partial<ReserveFramesRequest>, as: As = worker) => {
    const body = { generation: 1, vm_id: session.vmId, numberer: first, ...changes };
    return ask('POST', `/sessions/${session.id}/frame-numbers`, body, as);
  };
  const next = async () => {
    expect((await resume()).status).toBe(200);
    return { vm_id: String((await harness.session(account.key, session.id)).vm_id) };
  };
  const range = (base_seq: number, reserved_seq: number) => ({
    status: 200,
    body: { base_seq, reserved_seq },
  });

  test('are reserved in blocks; a repeated request changes nothing', async () => {
    expect(await reserve({})).toMatchObject(range(0, BLOCK));
    expect(await reserve({})).toMatchObject(range(0, BLOCK));
    expect(await reserve({ after: 60_000 })).toMatchObject(range(0, 60_000 + BLOCK));
    expect(await reserve({ after: 60_000 })).toMatchObject(range(0, 60_000 + BLOCK));
    expect(await reserve({ after: 1 })).toMatchObject(range(0, 60_000 + BLOCK));
  });

  test('that a lost worker may have shown are not used again', async () => {
    await reserve({});
    await commit();
    await reserve({ after: BLOCK });
    const { vm_id } = await next();
    const resumed = { generation: 2, vm_id, numberer: second };
    expect(await reserve(resumed)).toMatchObject(range(2 * BLOCK, 3 * BLOCK));
    expect(await reserve({ after: 2 * BLOCK })).toMatchObject({
      status: 409,
      code: 'stale_generation',
    });
    // The frames on both sides of the jump stay.
    const frame = `{"previous_seq":2,"seq":${2 * BLOCK + 1}}\n`;
    const seq = { first_seq: 2 * BLOCK + 1, last_seq: 2 * BLOCK + 1 };
    await commit({ ...seq, generation: 2, vm_id, frames: frame });
    expect(await state()).toMatchObject({
      first_seq: 1,
      last_seq: 2 * BLOCK + 1,
      frames: `{"seq":1}\n{"seq":2}\n${frame}`,
    });
  });

  test('continue without a jump after the last commit of a start', async () => {
    await reserve({});
    expect((await commit({ last_of: first })).status).toBe(204);
    const { vm_id } = await next();
    expect(await reserve({ generation: 2, vm_id, numberer: second })).toMatchObject(
      range(2, 2 + BLOCK),
    );
    // Nothing was numbered in this one.
    const none = { generation: 2, vm_id, first_seq: 3, last_seq: 2, frames: '' };
    await commit({ ...none, last_of: second });
    const again = await next();
    expect(await reserve({ ...again, generation: 3, numberer: third })).toMatchObject(
      range(2, 2 + BLOCK),
    );
  });

  test('stay reserved after the last commit of another numberer', async () => {
    await reserve({});
    expect(await reserve({ numberer: second })).toMatchObject(range(BLOCK, 2 * BLOCK));
    await commit({ last_of: first });
    expect(await reserve({ numberer: third })).toMatchObject(range(2 * BLOCK, 3 * BLOCK));
    for (const numberer of [first, second]) {
      expect(await reserve({ numberer, after: 1 })).toMatchObject({ code: 'stale_generation' });
    }
  });

  test('differ for all numberers that start at the same time', async () => {
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => reserve({ numberer: randomUUID() })),
    );
    const bases = answers.map(({ body }) => Number(body.base_seq)).sort((a, b) => a - b);
    expect(bases).toEqual(Array.from({ length: 8 }, (_, index) => index * BLOCK));
  });

  test('are extended for a session that started before numbers were reserved', async () => {
    expect(await reserve({ after: 700 })).toMatchObject({ status: 200 });
    const { vm_id } = await next();
    expect(await reserve({ generation: 2, vm_id, numberer: second })).toMatchObject(
      range(700 + BLOCK, 700 + 2 * BLOCK),
    );
  });

  test('are reserved only for the worker of the sandbox', async () => {
    const notFound = { status: 404, code: 'session_not_found' };
    expect(await reserve({}, other)).toMatchObject(notFound);
    for (const changes of [{ vm_id: 'vm_none' }, { vm_id: '\0' }, { generation: 2 }]) {
      expect(await reserve(changes)).toMatchObject(notFound);
    }
    expect(await reserve({ numberer: 'x' })).toMatchObject({ status: 400 });
  });
});
