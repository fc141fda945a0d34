import type { AgentSecrets, PlaceSandboxRequest } from '@svc/contract';
import { SessionTokens } from '@svc/service-kit';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { CLUSTER_SECRET, Harness, sessionRequest } from '../../../test/harness.ts';
import type { WorkerDouble } from '../../../test/worker-double.ts';

let harness: Harness;
let account: Awaited<ReturnType<Harness['signUp']>>;
let worker: WorkerDouble;

beforeAll(async () => {
  harness = await Harness.start({
    SVC_EGRESS_ALLOW_HOSTS: 'llm.internal:8443',
    SVC_RUNTIME_URL: 'wss://runtime.example.com',
    SVC_MODEL_GOOGLE: 'gemini-of-the-operator',
  });
  account = await harness.signUp();
  await harness.addBundle(account.key, 'llm', { LLM_API_KEY: 'key-1', TOKEN: 'value-1' });
  await harness.addBundle(account.key, 'other-llm', { LLM_API_KEY: 'key-2' });
  await harness.addBundle(account.key, 'extra', { EXTRA: 'value-2' });
  await harness.addBundle(account.key, 'model', { LLM_MODEL: 'model-of-bundle' });
  await harness.addBundle(account.key, 'bad-model', { LLM_MODEL: 'no model' });
  await harness.addBundle(account.key, 'base', { LLM_BASE_URL: 'https://llm.internal:8443/v1' });
});
afterAll(() => harness?.[Symbol.asyncDispose]());
beforeEach(async () => {
  await harness.reset();
  worker = await harness.addWorker('w1');
});

const create = (changes: object = {}, headers: Record<string, string> = {}) =>
  harness.call('POST', '/v1/sessions', {
    key: account.key,
    json: sessionRequest(changes),
    headers,
  });
const placed = (): PlaceSandboxRequest => {
  const last = worker.placed.at(-1);
  if (last === undefined) throw new Error('nothing was placed');
  return last;
};
const secretsOf = async (vmId: string): Promise<AgentSecrets> =>
  (await (
    await worker.ask(harness.plane.url, 'GET', `/sandboxes/${vmId}/agent-secrets`)
  ).json()) as AgentSecrets;

describe('a session', () => {
  test('is created with a token, an address and an end', async () => {
    const before = Date.now();
    const { status, body, headers } = await create({ app: { id: 'my-app', set_id: 'tools' } });
    expect(status).toBe(201);
    expect(Object.keys(body).sort()).toEqual([
      'chat_session_id',
      'connect_url',
      'expires_at',
      'jwt',
    ]);
    const id = String(body.chat_session_id);
    expect(headers.get('location')).toBe(`/v1/sessions/${id}`);
    expect(id).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
    expect(body.connect_url).toBe(`wss://runtime.example.com/v1/sessions/${id}/ws`);
    const expiry = Date.parse(String(body.expires_at));
    expect(Math.abs(expiry - before - 3_600_000)).toBeLessThan(60_000);
    const claims = await new SessionTokens(CLUSTER_SECRET, 'runtime').verify(String(body.jwt));
    expect(claims).toEqual({
      user_id: account.tenantId,
      app_id: 'my-app',
      set_id: 'tools',
      chat_session_id: id,
      cua_enabled: false,
      exp: Math.floor(expiry / 1000),
    });
  });

  test('runs in a sandbox of its own, with its agent', async () => {
    const { body } = await create({ ttl_seconds: 100 });
    const id = String(body.chat_session_id);
    expect(placed()).toMatchObject({
      template: 'standard',
      idle_timeout_seconds: 900,
      max_lifetime_seconds: 100,
      env_vars: {},
      agent: {
        kind: 'deictic',
        mode: 'session',
        vendor: 'anthropic',
        model: 'claude-sonnet-5-5',
        wire_version: 2,
        session: {
          chat_session_id: id,
          generation: 1,
          user_id: account.tenantId,
          app_id: 'my-app',
          set_id: 'default',
          resumed: false,
        },
      },
    });
    const session = await harness.session(account.key, id);
    expect(session).toMatchObject({
      chat_session_id: id,
      status: 'active',
      vm_id: placed().vm_id,
      agent: { kind: 'deictic' },
      app: { id: 'my-app', set_id: 'default' },
      template: 'standard',
      llm: { vendor: 'anthropic', model: 'claude-sonnet-5-5' },
      user_id: 'ada',
      expires_at: body.expires_at,
    });
    const sandbox = await harness.call('GET', `/v1/sandboxes/${session.vm_id}`, {
      key: account.key,
    });
    expect(sandbox.body).toMatchObject({
      state: 'running',
      agent: 'deictic',
      metadata: { user_id: 'ada' },
    });
  });

  test('lives at most two hours', async () => {
    const { body } = await create({ ttl_seconds: 1_000_000 });
    expect(placed().max_lifetime_seconds).toBe(7200);
    const left = Date.parse(String(body.expires_at)) - Date.now();
    expect(left).toBeLessThanOrEqual(7_200_000);
    expect(left).toBeGreaterThan(7_100_000);
  });

  test('is given the values of all its bundles, which go nowhere but to its worker', async () => {
    const { body, text } = await create({ secrets: ['llm', 'extra', 'llm'] });
    expect(await secretsOf(placed().vm_id)).toEqual({
      llm: { api_key: 'key-1' },
      env: { TOKEN: 'value-1', EXTRA: 'value-2' },
    });
    const everything = [text, JSON.stringify(worker.placed), ...harness.logLines].join();
    const stored = await harness.dump();
    for (const secret of ['key-1', 'value-1', 'value-2']) {
      expect(everything).not.toContain(secret);
      expect(stored).not.toContain(secret);
    }
    expect([...harness.logLines, stored].join()).not.toContain(String(body.jwt));
  });

  test('asks its own endpoint, and its own model, before those of its bundles', async () => {
    await create({ secrets: ['llm', 'base', 'model'] });
    expect(placed().agent).toMatchObject({ model: 'model-of-bundle' });
    expect((await secretsOf(placed().vm_id)).llm).toMatchObject({
      base_url: 'https://llm.internal:8443/v1',
    });
    await create({
      secrets: ['llm', 'base', 'model'],
      llm: { vendor: 'openai', model: 'mine', base_url: 'https://llm.internal:8443/mine' },
    });
    expect(placed().agent).toMatchObject({ vendor: 'openai', model: 'mine' });
    expect((await secretsOf(placed().vm_id)).llm).toMatchObject({
      base_url: 'https://llm.internal:8443/mine',
    });
  });

  test.each([
    ['anthropic', 'claude-sonnet-5-5'],
    ['openai', 'gpt-5.5'],
    ['google', 'gemini-of-the-operator'],
    ['deepseek', 'deepseek-v4-pro'],
  ])('of %s without a model takes the default, %s', async (vendor, model) => {
    expect((await create({ llm: { vendor } })).status).toBe(201);
    expect(placed().agent).toMatchObject({ vendor, model });
  });

  test.each([
    ['claude-code', 'anthropic', 'claude-x', 1024],
    ['codex', 'openai', 'o3', 1024],
    ['deictic', 'deepseek', 'anything/at:all', 512],
  ])('with %s takes its models, and the room it needs', async (kind, vendor, model, memory) => {
    const { status } = await create({ agent: { kind, version: '1.2' }, llm: { vendor, model } });
    expect(status).toBe(201);
    expect(placed()).toMatchObject({ agent: { kind, vendor, model }, memory_mib: memory });
  });

  test('with the template for desktops may control one', async () => {
    worker.templates = ['standard', 'cua'];
    await worker.register(harness.plane.url);
    const { body } = await create({ template: 'cua' });
    const claims = await new SessionTokens(CLUSTER_SECRET, 'runtime').verify(String(body.jwt));
    expect(claims.cua_enabled).toBe(true);
  });
});

describe('an app', () => {
  test('of the catalogue is taken as it stands there, with every set', async () => {
    const { body } = await harness.call('GET', '/v1/templates', { key: account.key });
    const entries = body.templates as {
      app_id: string;
      name: string;
      capability_sets: { set_id: string; name: string; tools: string[] }[];
    }[];
    expect(entries.length).toBeGreaterThan(0);
    for (const entry of entries) {
      const plain = await create({ agent: { kind: entry.app_id }, app: { id: entry.app_id } });
      expect(plain.status, plain.text).toBe(201);
      for (const set of entry.capability_sets) {
        const app = { id: entry.app_id, set_id: set.set_id };
        const answer = await create({ agent: { kind: entry.app_id }, app });
        expect(answer.status, answer.text).toBe(201);
        expect(placed().agent?.app).toEqual({
          name: entry.name,
          capability_sets: [{ name: set.name, agents: [{ name: entry.app_id, tools: set.tools }] }],
        });
      }
    }
  });

  test('that nobody describes leaves the agent all it can do', async () => {
    await create({ app: { id: 'mine', set_id: 'any' } });
    expect(placed().agent?.app).toBeUndefined();
  });

  const agents = [{ name: 'a', capability_name: 'c', tools: ['bash'] }, { name: 'b' }];

  test.each([
    ['by id', { default: { name: 'Both', agents }, x: { tools: [] } }, 'Both'],
    ['in a list', [{ set_id: 'x' }, { set_id: 'default', agents }], 'default'],
    ['in a list by name', [{ name: 'default', agents }], 'default'],
  ])('may bring its agents %s', async (_, capability_sets, name) => {
    const { status, text } = await create({ app: { id: 'mine', capability_sets } });
    expect(status, text).toBe(201);
    expect(placed().agent?.app).toEqual({ name: 'mine', capability_sets: [{ name, agents }] });
  });

  test('may just limit the tools of its one agent', async () => {
    await create({ app: { id: 'mine', capability_sets: { default: { tools: ['bash'] } } } });
    expect(placed().agent?.app).toEqual({
      name: 'mine',
      capability_sets: [{ name: 'default', agents: [{ name: 'mine', tools: ['bash'] }] }],
    });
  });
});

describe('refusals', () => {
  test.each<[string, object, number, string]>([
    ['no user_id', { user_id: undefined }, 400, 'validation_failed'],
    ['an empty user_id', { user_id: '' }, 400, 'validation_failed'],
    ['a long user_id', { user_id: 'x'.repeat(129) }, 400, 'validation_failed'],
    ['a user_id that is null', { user_id: null }, 400, 'validation_failed'],
    ['a user_id with NUL', { user_id: 'a\0' }, 400, 'validation_failed'],
    ['no agent', { agent: undefined }, 400, 'validation_failed'],
    ['no app', { app: undefined }, 400, 'validation_failed'],
    ['no llm', { llm: undefined }, 400, 'validation_failed'],
    ['an unknown vendor', { llm: { vendor: 'acme' } }, 400, 'validation_failed'],
    ['a ttl of nothing', { ttl_seconds: 0 }, 400, 'validation_failed'],
    ['a ttl in text', { ttl_seconds: '60' }, 400, 'validation_failed'],
    ['eleven bundles', { secrets: Array(11).fill('llm') }, 400, 'validation_failed'],
    ['an unknown agent', { agent: { kind: 'hal' } }, 400, 'session_agent_unknown'],
    ['no agent kind', { agent: {} }, 400, 'session_agent_unknown'],
    ['an unknown template', { template: 'windows' }, 400, 'session_template_unknown'],
    ['no template', { template: undefined }, 400, 'session_template_unknown'],
    ['a template for sandboxes only', { template: 'canvas' }, 400, 'session_template_unknown'],
    ['a model with a space', { llm: { vendor: 'openai', model: 'a b' } }, 400, 'llm_model_invalid'],
    ['an empty model', { llm: { vendor: 'openai', model: '' } }, 400, 'llm_model_invalid'],
    [
      'a foreign model for claude-code',
      { agent: { kind: 'claude-code' }, llm: { vendor: 'anthropic', model: 'gpt-5' } },
      400,
      'model_not_allowed',
    ],
    [
      'a foreign model for codex',
      { agent: { kind: 'codex' }, llm: { vendor: 'openai', model: 'claude-x' } },
      400,
      'model_not_allowed',
    ],
    [
      'claude-code with the default of another vendor',
      { agent: { kind: 'claude-code' }, llm: { vendor: 'openai' } },
      400,
      'model_not_allowed',
    ],
    [
      'claude-code at a vendor whose API it does not speak',
      { agent: { kind: 'claude-code' }, llm: { vendor: 'google', model: 'claude-x' } },
      400,
      'model_not_allowed',
    ],
    [
      'a base URL without TLS',
      { llm: { vendor: 'openai', base_url: 'http://8.8.8.8/' } },
      400,
      'llm_base_url_refused',
    ],
    [
      'a base URL in the house',
      { llm: { vendor: 'openai', base_url: 'https://127.0.0.1/' } },
      400,
      'llm_base_url_refused',
    ],
    [
      'a base URL with a password',
      { llm: { vendor: 'openai', base_url: 'https://a:b@llm.internal:8443/' } },
      400,
      'llm_base_url_refused',
    ],
    ['no bundles', { secrets: [] }, 400, 'llm_api_key_missing'],
    ['no list of bundles', { secrets: undefined }, 400, 'llm_api_key_missing'],
    ['bundles without a key', { secrets: ['extra'] }, 400, 'llm_api_key_missing'],
    ['bundles that collide', { secrets: ['llm', 'other-llm'] }, 400, 'secret_key_collision'],
    ['a bundle whose model is none', { secrets: ['llm', 'bad-model'] }, 400, 'llm_model_invalid'],
    ['a bundle that is not there', { secrets: ['llm', 'none'] }, 404, 'bundle_not_found'],
    ['a bundle of no possible name', { secrets: ['llm', 'A\0'] }, 404, 'bundle_not_found'],
    [
      'a set that the app lacks',
      { app: { id: 'mine', capability_sets: { x: {} } } },
      400,
      'capability_set_unknown',
    ],
    [
      'a set that the catalogue lacks',
      { app: { id: 'deictic', set_id: 'none' } },
      400,
      'capability_set_unknown',
    ],
    [
      'capability sets of no known shape',
      { app: { id: 'mine', capability_sets: {} } },
      400,
      'app_json_invalid',
    ],
  ])('%s', async (_, changes, status, code) => {
    const answer = await create(changes);
    expect(answer.body).toMatchObject({ status, code });
    expect(answer.status).toBe(status);
    expect(worker.placed).toEqual([]);
    expect((await harness.sql.query('select 1 from sessions')).rowCount).toBe(0);
  });

  test('a bundle of another tenant is not there', async () => {
    const stranger = await harness.signUp();
    const answer = await harness.call('POST', '/v1/sessions', {
      key: stranger.key,
      json: sessionRequest(),
    });
    expect(answer).toMatchObject({ status: 404, body: { code: 'bundle_not_found' } });
  });

  test('form comes first, then the request alone, then what its bundles hold', async () => {
    const bad = { template: 'windows', llm: { vendor: 'openai', base_url: 'http://x/' } };
    expect((await create({ ...bad, secrets: ['none'] })).body.code).toBe(
      'session_template_unknown',
    );
    expect((await create({ llm: bad.llm, secrets: ['none'] })).body.code).toBe(
      'llm_base_url_refused',
    );
    expect((await create({ secrets: ['none', 'llm', 'other-llm'] })).body.code).toBe(
      'bundle_not_found',
    );
  });

  test.each<[string, number, string]>([
    ['no_capacity', 409, 'no_capacity'],
    ['boot_failed', 500, 'boot_failed'],
    ['guest_unresponsive', 502, 'guest_unresponsive'],
  ] as const)('%s of the worker leaves no session behind', async (failure, status, code) => {
    worker.failures.set('create', failure as 'no_capacity');
    expect(await create()).toMatchObject({ status, body: { code } });
    expect((await harness.sql.query('select 1 from sessions')).rowCount).toBe(0);
    expect((await harness.sql.query('select 1 from agent_secrets')).rowCount).toBe(0);
  });

  test('no worker is 503', async () => {
    await harness.reset();
    expect(await create()).toMatchObject({ status: 503, body: { code: 'no_workers' } });
    expect((await harness.sql.query('select 1 from sessions')).rowCount).toBe(0);
  });
});

describe('Idempotency-Key', () => {
  test('the same key and body give the same answer, even at the same time', async () => {
    const keyed = () => create({}, { 'idempotency-key': 'one' });
    const answers = await Promise.all([keyed(), keyed(), keyed()]);
    answers.push(await keyed());
    expect(answers.map((answer) => answer.status)).toEqual([201, 201, 201, 201]);
    expect(new Set(answers.map((answer) => answer.text)).size).toBe(1);
    expect(worker.placed).toHaveLength(1);
    expect(await create({ user_id: 'b' }, { 'idempotency-key': 'one' })).toMatchObject({
      status: 409,
      body: { code: 'idempotency_key_reused' },
    });
  });

  test('the kept answer holds no token', async () => {
    const { body } = await create({}, { 'idempotency-key': 'two' });
    expect(await harness.dump()).not.toContain(String(body.jwt));
  });

  test('a key of sandboxes is another key', async () => {
    const headers = { 'idempotency-key': 'three' };
    await create({}, headers);
    const sandbox = await harness.call('POST', '/v1/sandboxes', {
      key: account.key,
      json: { template: 'standard' },
      headers,
    });
    expect(sandbox.status).toBe(201);
  });

  test('after a crash half-way, the retry finds the session that was made', async () => {
    const keyed = () => create({}, { 'idempotency-key': 'four' });
    const first = await keyed();
    await harness.sql.query(
      `update idempotency_keys set response = null, locked_until = now() - interval '1 second' where key = 'four'`,
    );
    expect((await keyed()).text).toBe(first.text);
    expect(worker.placed).toHaveLength(1);
  });
});

test('a caller that leaves has its session taken back', async () => {
  const controller = new AbortController();
  worker.beforeCreated = async (_request, gone) => {
    controller.abort();
    await new Promise<void>((resolve) => gone.addEventListener('abort', () => resolve()));
    throw gone.reason;
  };
  await expect(
    harness.call('POST', '/v1/sessions', {
      key: account.key,
      json: sessionRequest(),
      signal: controller.signal,
    }),
  ).rejects.toThrow();
  for (const table of ['sessions', 'sandboxes', 'agent_secrets']) {
    await expect
      .poll(async () => (await harness.sql.query(`select 1 from ${table}`)).rowCount)
      .toBe(0);
  }
});
