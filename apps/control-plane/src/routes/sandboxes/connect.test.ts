import { DEFAULT_APP, SESSION_TOKEN_HEADER, uuidOf } from '@svc/contract';
import { SessionTokens, sessionTokenKey } from '@svc/service-kit';
import { ComponentDouble, type WorkerDouble } from '@svc/worker-double';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { CLUSTER_SECRET, Harness } from '../../../test/harness.ts';

const AGENT = { agent: 'claude-code', llm_key: 'k' };
const runtime = new ComponentDouble('runtime', 'r1', CLUSTER_SECRET);
const RUNTIME_URL = 'wss://runtime.example.com';

let harness: Harness;
let account: Awaited<ReturnType<Harness['signUp']>>;
let worker: WorkerDouble;

beforeAll(async () => {
  harness = await Harness.start({ SVC_RUNTIME_URL: RUNTIME_URL });
  account = await harness.signUp();
  await harness.addBundle(account.key, 'llm', { LLM_API_KEY: 'k' });
});
afterAll(() => harness?.[Symbol.asyncDispose]());
beforeEach(async () => {
  await harness.reset();
  worker = await harness.addWorker('w1');
});

const connect = (vmId: string) =>
  harness.call('POST', `/v1/sandboxes/${vmId}/connect`, { key: account.key });

/** The answer to a runtime host that asks for the owner and the worker of a session. */
async function routeOf(uuid: string): Promise<{ status: number; body: Record<string, unknown> }> {
  const identity = {
    user_id: account.tenantId,
    app_id: DEFAULT_APP,
    set_id: 'default',
    chat_session_id: uuid,
    cua_enabled: false,
  };
  const expiresAt = new Date(Date.now() + 60_000);
  const token = await new SessionTokens([sessionTokenKey(CLUSTER_SECRET)]).mint(
    identity,
    expiresAt,
  );
  const answer = await runtime.ask(harness.plane.url, 'GET', `/sessions/${uuid}`, {
    headers: { [SESSION_TOKEN_HEADER]: token },
  });
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
}

describe('the agent of a sandbox', () => {
  test('is reached with a URL and a token of its own, which live as long as the sandbox may', async () => {
    const vmId = await harness.create(account.key, { ...AGENT, max_lifetime_seconds: 600 });
    const { status, body } = await connect(vmId);
    expect(status).toBe(200);
    const uuid = uuidOf(vmId);
    const record = await harness.call('GET', `/v1/sandboxes/${vmId}`, { key: account.key });
    const ends = Date.parse(String(record.body.created_at)) + 600_000;
    expect(body).toEqual({
      connect_url: `${RUNTIME_URL}/v1/sessions/${uuid}/ws`,
      jwt: expect.any(String),
      expires_at: new Date(ends).toISOString(),
    });
    const tokens = new SessionTokens([sessionTokenKey(CLUSTER_SECRET)]);
    expect(await tokens.verify(String(body.jwt))).toEqual({
      user_id: account.tenantId,
      app_id: DEFAULT_APP,
      set_id: 'default',
      chat_session_id: uuid,
      cua_enabled: false,
      exp: Math.floor(ends / 1000),
    });
    expect(await routeOf(uuid)).toMatchObject({
      status: 200,
      body: { tenant_id: account.tenantId, chat_session_id: uuid, worker: { vm_id: vmId } },
    });
  });

  test('waits for tasks of clients when the request names none', async () => {
    await harness.create(account.key, AGENT);
    await harness.create(account.key, { ...AGENT, task: 'do it' });
    expect(worker.placed[0]?.placement.agent).toMatchObject({ interactive: true });
    expect(worker.placed[1]?.placement.agent).not.toHaveProperty('interactive');
  });

  test('of a paused sandbox is reached too', async () => {
    const vmId = await harness.create(account.key, AGENT);
    await worker.event(harness.plane.url, worker.change(vmId, { state: 'paused' }));
    expect((await connect(vmId)).status).toBe(200);
    expect(await routeOf(uuidOf(vmId))).toMatchObject({ body: { worker: { vm_id: vmId } } });
  });

  test('is 409 when there is none, and has no route', async () => {
    const vmId = await harness.create(account.key);
    expect(await connect(vmId)).toMatchObject({
      status: 409,
      body: { code: 'sandbox_has_no_agent' },
    });
    expect((await routeOf(uuidOf(vmId))).status).toBe(401);
  });

  test('is 409 when it has exited, while its route still leads to its last frames', async () => {
    const vmId = await harness.create(account.key, { ...AGENT, task: 't' });
    const exited = worker.change(vmId, { agent_status: 'completed', agent_exit_code: 0 });
    await worker.event(harness.plane.url, exited);
    expect(await connect(vmId)).toMatchObject({ status: 409, body: { code: 'agent_ended' } });
    expect(await routeOf(uuidOf(vmId))).toMatchObject({ body: { worker: { vm_id: vmId } } });
  });

  test('is 409 when its sandbox has ended, which leaves its route without a worker', async () => {
    const vmId = await harness.create(account.key, AGENT);
    await harness.call('DELETE', `/v1/sandboxes/${vmId}`, { key: account.key });
    expect(await connect(vmId)).toMatchObject({
      status: 409,
      body: { code: 'sandbox_not_running' },
    });
    const route = await routeOf(uuidOf(vmId));
    expect(route).toMatchObject({ status: 200, body: { status: 'completed' } });
    expect(route.body).not.toHaveProperty('worker');
  });

  test('is no session', async () => {
    const { key } = account;
    const uuid = uuidOf(await harness.create(key, AGENT));
    expect((await harness.call('GET', `/v1/sessions/${uuid}`, { key })).status).toBe(404);
    const json = { chat_session_id: uuid };
    const resumed = await harness.call('POST', '/v1/sessions/resume', { key, json });
    expect(resumed.status).toBe(404);
  });
});

test('the agent of a session is reached as the session', async () => {
  const { vmId, access } = await harness.startSession(account.key);
  const { chat_session_id: id, ...rest } = access;
  expect(await connect(vmId)).toMatchObject({ status: 200, body: rest });
  expect((await routeOf(uuidOf(vmId))).status).toBe(401);
  await harness.call('DELETE', `/v1/sessions/${id}`, { key: account.key });
  expect((await connect(vmId)).status).toBe(409);
});
