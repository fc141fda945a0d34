import { SessionTokens, sessionTokenKey } from '@svc/service-kit';
import { describe, expect, test } from 'vitest';
import { CLUSTER_SECRET, sessionRequest } from '../../../test/harness.ts';
import { useSessionWorld } from '../../../test/session-world.ts';

const world = useSessionWorld();

describe('a session', () => {
  test('is created with a token, a URL and an expiry', async () => {
    const before = Date.now();
    const { status, body, headers } = await world().create({
      app: { id: 'my-app', set_id: 'tools' },
    });
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
    const claims = await new SessionTokens([sessionTokenKey(CLUSTER_SECRET)]).verify(
      String(body.jwt),
    );
    expect(claims).toEqual({
      user_id: world().account.tenantId,
      app_id: 'my-app',
      set_id: 'tools',
      chat_session_id: id,
      cua_enabled: false,
      exp: Math.floor(expiry / 1000),
    });
  });

  test('runs in a sandbox of its own, with its agent', async () => {
    const { body } = await world().create({ ttl_seconds: 100 });
    const id = String(body.chat_session_id);
    expect(world().placed).toMatchObject({
      env_vars: {},
      placement: {
        template: 'standard',
        idle_timeout_seconds: 900,
        max_lifetime_seconds: 100,
        agent: {
          kind: 'deictic',
          mode: 'session',
          vendor: 'anthropic',
          model: 'claude-sonnet-5-5',
          wire_version: 2,
          session: {
            chat_session_id: id,
            generation: 1,
            user_id: world().account.tenantId,
            app_id: 'my-app',
            set_id: 'default',
            resumed: false,
          },
        },
      },
    });
    const session = await world().harness.session(world().account.key, id);
    expect(session).toMatchObject({
      chat_session_id: id,
      status: 'active',
      vm_id: world().placed.vm_id,
      agent: { kind: 'deictic' },
      app: { id: 'my-app', set_id: 'default' },
      template: 'standard',
      llm: { vendor: 'anthropic', model: 'claude-sonnet-5-5' },
      user_id: 'ada',
      expires_at: body.expires_at,
    });
    const sandbox = await world().harness.call('GET', `/v1/sandboxes/${session.vm_id}`, {
      key: world().account.key,
    });
    expect(sandbox.body).toMatchObject({
      state: 'running',
      agent: 'deictic',
      metadata: { user_id: 'ada' },
    });
  });

  test('lives at most two hours', async () => {
    const { body } = await world().create({ ttl_seconds: 1_000_000 });
    expect(world().placed.placement.max_lifetime_seconds).toBe(7200);
    const left = Date.parse(String(body.expires_at)) - Date.now();
    expect(left).toBeLessThanOrEqual(7_200_000);
    expect(left).toBeGreaterThan(7_100_000);
  });

  test('has the requested size, rounded up, in its sandbox', async () => {
    const { body } = await world().create({ vcpu: 3, memory_mib: 1500, disk_mib: 6000 });
    const given = { vcpu: 4, memory_mib: 2048, disk_mib: 6000 };
    expect(world().placed.placement.size).toEqual(given);
    const { key } = world().account;
    const session = await world().harness.session(key, String(body.chat_session_id));
    const path = `/v1/sandboxes/${session.vm_id}`;
    const sandbox = await world().harness.call('GET', path, { key });
    expect(sandbox.body).toMatchObject(given);
  });

  test.each([
    ['/vcpu', { vcpu: 9 }],
    ['/memory_mib', { memory_mib: 255 }],
    ['/memory_mib', { memory_mib: 16_385 }],
    ['/disk_mib', { disk_mib: 1 }],
  ])('is refused when %s is out of range: %j', async (path, size) => {
    expect(await world().create(size)).toMatchObject({
      status: 400,
      body: { code: 'validation_failed', errors: [{ path }] },
    });
  });

  test('with the desktop template may control a desktop', async () => {
    world().worker.templates = ['standard', 'cua'];
    await world().worker.register(world().harness.plane.url);
    const { body } = await world().create({ template: 'cua' });
    const claims = await new SessionTokens([sessionTokenKey(CLUSTER_SECRET)]).verify(
      String(body.jwt),
    );
    expect(claims.cua_enabled).toBe(true);
  });
});

describe('Idempotency-Key', () => {
  const keyed = (key: string, changes: object = {}) =>
    world().create(changes, { headers: { 'idempotency-key': key } });

  test('the same key and body get the same answer, even concurrently', async () => {
    const answers = await Promise.all([keyed('one'), keyed('one'), keyed('one')]);
    answers.push(await keyed('one'));
    expect(answers.map((answer) => answer.status)).toEqual([201, 201, 201, 201]);
    expect(new Set(answers.map((answer) => answer.text)).size).toBe(1);
    expect(world().worker.placed).toHaveLength(1);
    expect(await keyed('one', { user_id: 'b' })).toMatchObject({
      status: 409,
      body: { code: 'idempotency_key_reused' },
    });
  });

  test('has its answer after the bundle of the session was deleted', async () => {
    const { harness, account } = world();
    await harness.addBundle(account.key, 'once', { LLM_API_KEY: 'k' });
    const first = await keyed('five', { secrets: ['once'] });
    const deleted = await harness.call('DELETE', '/v1/tenants/me/secrets/once', {
      key: account.key,
    });
    expect(deleted.status).toBeLessThan(300);
    expect(await keyed('five', { secrets: ['once'] })).toMatchObject({
      status: 201,
      text: first.text,
    });
  });

  test('the stored answer contains no token', async () => {
    const { body } = await keyed('two');
    expect(await world().harness.dump()).not.toContain(String(body.jwt));
  });

  test('keys of sandboxes are independent', async () => {
    await keyed('three');
    const sandbox = await world().harness.call('POST', '/v1/sandboxes', {
      key: world().account.key,
      json: { template: 'standard' },
      headers: { 'idempotency-key': 'three' },
    });
    expect(sandbox.status).toBe(201);
  });

  test('after a crash, the retry finds the created session', async () => {
    const first = await keyed('four');
    await world().harness.sql.query(
      `update idempotency_keys set response = null, locked_until = now() - interval '1 second' where key = 'four'`,
    );
    expect((await keyed('four')).text).toBe(first.text);
    expect(world().worker.placed).toHaveLength(1);
  });
});

test('a caller that leaves leaves no session behind', async () => {
  const controller = new AbortController();
  world().worker.beforeCreated = async (_request, gone) => {
    controller.abort();
    await new Promise<void>((resolve) => gone.addEventListener('abort', () => resolve()));
    throw gone.reason;
  };
  await expect(world().create({}, { signal: controller.signal })).rejects.toThrow();
  for (const table of ['sessions', 'sandboxes', 'agent_secrets'] as const) {
    await expect.poll(() => world().count(table)).toBe(0);
  }
});

test('a caller that leaves when the worker has already answered leaves no session behind', async () => {
  const { harness, worker, account } = world();
  const call = { key: account.key, json: sessionRequest() };
  await harness.leaveBeforeAnswer(worker, '/v1/sessions', call);
  const [vmId = ''] = worker.sandboxes.keys();
  await expect.poll(() => worker.sandboxes.get(vmId)?.state).toBe('destroyed');
  for (const table of ['sessions', 'agent_secrets'] as const) {
    await expect.poll(() => world().count(table)).toBe(0);
  }
});
