import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { Harness } from '../../../test/harness.ts';

let harness: Harness;
let key: string;

beforeAll(async () => {
  harness = await Harness.start({
    SVC_EGRESS_ALLOW_HOSTS: 'allowed.internal:8443',
    SVC_LIMIT_SANDBOXES_PER_TENANT: '20',
  });
  key = (await harness.signUp()).key;
});
afterAll(() => harness?.[Symbol.asyncDispose]());
beforeEach(() => harness.reset());

const create = (json: unknown, headers: Record<string, string> = {}) =>
  harness.call('POST', '/v1/sandboxes', { key, json, headers });
const standard = { template: 'standard' };
const agent = { ...standard, agent: 'claude-code', llm_key: 'k', model: 'claude-x' };

describe('a sandbox', () => {
  test('runs with the requested settings', async () => {
    const worker = await harness.addWorker('w1');
    const answer = await create({
      ...standard,
      env_vars: { A: 'b' },
      metadata: { user_id: 'u1' },
      memory_mib: 1024,
      vcpu: 2,
      max_lifetime_seconds: 99_999,
      unknown_field: true,
    });
    expect(answer.status).toBe(201);
    expect(answer.body).toEqual({
      vm_id: expect.stringMatching(/^vm_[0-9a-f]{32}$/),
      state: 'running',
      host_port: 22_001,
      endpoint: '127.0.0.1',
    });
    expect(worker.placed[0]).toMatchObject({
      generation: 1,
      env_vars: { A: 'b' },
      placement: {
        template: 'standard',
        size: { memory_mib: 1024, vcpu: 2 },
        idle_timeout_seconds: 60,
        max_lifetime_seconds: 7200,
      },
    });
    const record = await harness.call('GET', `/v1/sandboxes/${answer.body.vm_id}`, { key });
    expect(record.body).toMatchObject({
      state: 'running',
      memory_mib: 1024,
      vcpu: 2,
      metadata: { user_id: 'u1' },
      rootfs: 'standard-1.qcow2',
    });
  });

  test('gets the next larger size that sandboxes come in, and its record shows it', async () => {
    const worker = await harness.addWorker('w1');
    const { body } = await create({ ...standard, vcpu: 5, memory_mib: 700, disk_mib: 5000 });
    const given = { vcpu: 8, memory_mib: 1024, disk_mib: 5000 };
    expect(worker.placed[0]?.placement.size).toEqual(given);
    const record = await harness.call('GET', `/v1/sandboxes/${body.vm_id}`, { key });
    expect(record.body).toMatchObject(given);
    const { rows } = await harness.sql.query('select reserved_memory_mib from workers');
    expect(rows).toEqual([{ reserved_memory_mib: 1024 }]);
  });

  test('goes to the worker with most capacity, or to the next one when that refuses or is unreachable', async () => {
    const small = await harness.addWorker('small', (w) => {
      w.memoryMib = 2048;
    });
    const full = await harness.addWorker('full', (w) => {
      w.memoryMib = 8192;
      w.failures.set('create', 'no_capacity');
    });
    const gone = await harness.addWorker('gone', (w) => {
      w.memoryMib = 16_384;
    });
    await gone.stop();
    const vmId = await harness.create(key);
    expect(full.placed).toHaveLength(1);
    expect(small.placed).toMatchObject([{ vm_id: vmId, generation: 3 }]);
    const { rows } = await harness.sql.query(
      'select worker_id, reserved_memory_mib from workers order by worker_id',
    );
    expect(rows).toEqual([
      { worker_id: 'full', reserved_memory_mib: 0 },
      { worker_id: 'gone', reserved_memory_mib: 0 },
      { worker_id: 'small', reserved_memory_mib: 512 },
    ]);
  });

  test('keeps any JSON metadata unchanged', async () => {
    await harness.addWorker('w1');
    const metadata = { nul: 'a\0b', lone: '\ud800', deep: { list: [1, null, { x: 1e300 }] } };
    const vmId = await harness.create(key, { metadata });
    const record = await harness.call('GET', `/v1/sandboxes/${vmId}`, { key });
    expect(record.body.metadata).toEqual(metadata);
    await harness.create(key, { metadata: { a: 'é'.repeat(8_188) } });
  });

  // A name of 128 characters, a value of 130,942 bytes, '=' and NUL are the 128 KiB that Linux takes.
  test('takes environment variables that Linux takes, and is 400 for one byte more', async () => {
    const worker = await harness.addWorker('w1');
    const [long, value] = ['N'.repeat(128), `${'字'.repeat(43_647)}x`];
    expect(Buffer.byteLength(`${long}=${value}\0`)).toBe(128 * 1024);
    await harness.create(key, { env_vars: { [long]: value } });
    expect(worker.placed[0]?.env_vars).toEqual({ [long]: value });
    expect(await create({ ...standard, env_vars: { A: `${value}x` } })).toMatchObject({
      status: 400,
      body: { code: 'validation_failed', errors: [{ path: '/env_vars/A' }] },
    });
  });

  test('twenty concurrent creates all succeed', async () => {
    await harness.addWorker('w1', (w) => {
      w.memoryMib = 65_536;
    });
    const answers = await Promise.all(Array.from({ length: 20 }, () => create(standard)));
    expect(answers.map((answer) => answer.status)).toEqual(Array(20).fill(201));
    expect(await create(standard)).toMatchObject({
      status: 429,
      body: { code: 'sandbox_limit_reached' },
    });
  });
});

describe('refusals', () => {
  const refuses = async (json: unknown, status: number, code: string) => {
    const answer = await create(json);
    expect(answer.body).toMatchObject({ status, code });
    expect(answer.status).toBe(status);
  };

  test('check the credential first', async () => {
    for (const json of [standard, { template: 7 }, 'nonsense']) {
      expect(await harness.call('POST', '/v1/sandboxes', { json })).toMatchObject({ status: 401 });
    }
  });

  test.each([
    [{}],
    [{ template: null }],
    [{ template: 7 }],
    [[]],
    [{ ...standard, idle_timeout_seconds: 0 }],
    [{ ...standard, idle_timeout_seconds: 1.5 }],
    [{ ...standard, max_lifetime_seconds: '60' }],
    [{ ...standard, vcpu: 9 }],
    [{ ...standard, memory_mib: 1 }],
    [{ ...standard, env_vars: { A: 1 } }],
    [{ ...standard, env_vars: { 'A B': 'x' } }],
    [{ ...standard, env_vars: { A: 'nul\0' } }],
    [{ ...standard, metadata: [] }],
  ])('the form of %j is 400', (json) => refuses(json, 400, 'validation_failed'));

  test('check the form, then names, then rules', async () => {
    await refuses({ template: 'nope', idle_timeout_seconds: 0 }, 400, 'validation_failed');
    await refuses({ template: 'nope', env_vars: { TASK: 'x' } }, 501, 'unknown_template');
    await refuses({ ...standard, agent: 'nope', env_vars: { TASK: 'x' } }, 501, 'unknown_agent');
    await refuses({ ...standard, env_vars: { TASK: 'x' } }, 400, 'reserved_env_var');
  });

  test.each([
    ['llm_key_required', { ...standard, agent: 'codex', model: 'gpt-x' }],
    ['llm_key_required', { ...agent, llm_key: '' }],
    ['llm_key_required', { ...agent, llm_key: ' \t\n' }],
    ['validation_failed', { ...agent, llm_key: 'sk-first\nsk-second' }],
    ['validation_failed', { ...agent, llm_key: '“sk-key”' }],
    ['model_required', { ...standard, agent: 'deictic', llm_key: 'k' }],
    ['model_not_allowed', { ...agent, model: 'gpt-x' }],
    ['reserved_env_var', { ...standard, env_vars: { SVC_PERSISTENCE_URL: 'x' } }],
    // As JSON, 16,385 bytes in fewer characters.
    ['metadata_too_large', { ...standard, metadata: { a: `${'é'.repeat(8_188)}x` } }],
    ['workspace_fields_required', { ...standard, workspace_enabled: true, app_id: 'a' }],
    ['wire_version_invalid', { ...standard, wire_version: 3 }],
    ['app_json_invalid', { ...standard, app_json: { name: 'a', agents: [] } }],
    ['app_json_invalid', { ...standard, app_json: { name: 'a', capability_sets: [] } }],
    [
      'app_json_invalid',
      { ...standard, app_json: { capability_sets: [{ name: 'c', agents: [{ name: 'x' }] }] } },
    ],
    [
      'multi_agent_needs_wire_version_2',
      {
        ...standard,
        wire_version: 1,
        app_json: {
          name: 'a',
          capability_sets: [{ name: 'c', agents: [{ name: 'x' }, { name: 'y' }] }],
        },
      },
    ],
  ])('%s is 400', (code, json) => refuses(json, 400, code));

  test.each([
    ['http://example.com/'],
    ['https://user:pw@example.com/'],
    ['https://127.0.0.1/'],
    ['https://[::1]/'],
    ['https://[::ffff:10.0.0.1]/'],
    ['https://169.254.169.254/latest'],
    ['https://10.1.2.3/'],
    ['https://100.64.0.1/'],
    ['https://2130706433/'],
    ['https://0x7f.1/'],
    ['https://8.8.8.8:22/'],
    ['https://localhost/'],
    ['ftp://example.com/'],
    ['not a url'],
    [''],
  ])('persistence_url %j is 400', (url) =>
    refuses({ ...standard, persistence_url: url }, 400, 'persistence_url_refused'),
  );

  test('accept a persistence_url on a public address or an allowed host', async () => {
    await harness.addWorker('w1');
    for (const persistence_url of ['https://8.8.8.8/state', 'https://allowed.internal:8443/x']) {
      await harness.create(key, { persistence_url });
    }
  });

  test('answer 501 to templates without an image, after every rule', async () => {
    const worker = await harness.addWorker('w1');
    for (const template of ['browser', 'cua', 'canvas']) {
      await refuses({ template }, 501, 'template_not_available');
    }
    expect(worker.placed).toEqual([]);
  });

  test('answer 503 without workers, 409 without capacity', async () => {
    await refuses(standard, 503, 'no_workers');
    const worker = await harness.addWorker('w1', (w) => {
      w.memoryMib = 600;
    });
    await refuses({ ...standard, memory_mib: 16_384 }, 409, 'no_capacity');
    worker.failures.set('create', 'no_capacity');
    await refuses(standard, 409, 'no_capacity');
    await worker.stop();
    await refuses(standard, 503, 'no_workers');
    await harness.sql.query(`update workers set heartbeat_at = now() - interval '31 seconds'`);
    await refuses(standard, 503, 'no_workers');
    const { rows } = await harness.sql.query('select 1 from sandboxes');
    expect(rows).toEqual([]);
  });

  test('answer 500 when a sandbox does not boot, which stays on record with the reason', async () => {
    const worker = await harness.addWorker('w1');
    worker.failures.set('create', 'boot_failed');
    await refuses(standard, 500, 'boot_failed');
    const { text } = await harness.call('GET', '/v1/sandboxes', { key });
    expect(JSON.parse(text)).toMatchObject([{ state: 'destroyed', end_reason: 'boot_failed' }]);
  });

  test('cover malformed, mistyped and huge bodies', async () => {
    const send = (raw: string, type = 'application/json') =>
      harness.call('POST', '/v1/sandboxes', { key, raw, headers: { 'content-type': type } });
    expect(await send('{')).toMatchObject({ status: 400, body: { code: 'invalid_json' } });
    expect(await send('{}', 'text/plain')).toMatchObject({ status: 415 });
    expect(await send('{"__proto__": {"template": "standard"}}')).toMatchObject({ status: 400 });
    const huge = JSON.stringify({ ...standard, task: 'x'.repeat(1_100_000) });
    expect(await send(huge)).toMatchObject({ status: 413, body: { code: 'payload_too_large' } });
  });
});

describe('a caller that leaves', () => {
  test('leaves no sandbox behind', async () => {
    const worker = await harness.addWorker('w1');
    const controller = new AbortController();
    const seen = Promise.withResolvers<void>();
    worker.beforeCreated = async (_request, gone) => {
      controller.abort();
      await new Promise<void>((resolve) => gone.addEventListener('abort', () => resolve()));
      seen.resolve();
      throw gone.reason;
    };
    await expect(
      harness.call('POST', '/v1/sandboxes', { key, json: standard, signal: controller.signal }),
    ).rejects.toThrow();
    await seen.promise;
    await expect
      .poll(async () => (await harness.sql.query('select 1 from sandboxes')).rows.length)
      .toBe(0);
    const { rows } = await harness.sql.query('select reserved_memory_mib from workers');
    expect(rows).toEqual([{ reserved_memory_mib: 0 }]);
  });

  test('leaves no sandbox behind when the worker has already answered', async () => {
    const worker = await harness.addWorker('w1');
    await harness.leaveBeforeAnswer(worker, '/v1/sandboxes', { key, json: standard });
    const [vmId = ''] = worker.sandboxes.keys();
    await expect.poll(() => worker.sandboxes.get(vmId)?.state).toBe('destroyed');
    const { body } = await harness.call('GET', `/v1/sandboxes/${vmId}`, { key });
    expect(body).toMatchObject({ state: 'destroyed', end_reason: 'deleted' });
    const { rows } = await harness.sql.query('select reserved_memory_mib from workers');
    expect(rows).toEqual([{ reserved_memory_mib: 0 }]);
  });
});

describe('Idempotency-Key', () => {
  const keyed = (idempotencyKey: string, json: unknown = standard) =>
    create(json, { 'idempotency-key': idempotencyKey });

  test('the same key and body get the same answer, even concurrently', async () => {
    const worker = await harness.addWorker('w1');
    const answers = await Promise.all(Array.from({ length: 5 }, () => keyed('one')));
    answers.push(await create({ metadata: undefined, ...standard }, { 'idempotency-key': 'one' }));
    expect(new Set(answers.map((answer) => answer.text)).size).toBe(1);
    expect(answers.every((answer) => answer.status === 201)).toBe(true);
    expect(worker.placed).toHaveLength(1);
  });

  test('has its answer, whatever a request without it would be told by now', async () => {
    await harness.addWorker('w1');
    const json = { ...standard, persistence_url: 'https://allowed.internal:8443/x' };
    const first = await keyed('seven', json);
    const plane = await harness.startAnother({ SVC_EGRESS_ALLOW_HOSTS: 'another.internal' });
    onTestFinished(() => plane.close());
    const ask = (headers: Record<string, string>) =>
      harness.call('POST', '/v1/sandboxes', { key, json, plane, headers });
    expect(await ask({})).toMatchObject({ body: { code: 'persistence_url_refused' } });
    expect(await ask({ 'idempotency-key': 'seven' })).toMatchObject({
      status: 201,
      text: first.text,
    });
  });

  test('another body is 409; a malformed key 400', async () => {
    await harness.addWorker('w1');
    await keyed('two');
    expect(await keyed('two', { ...standard, vcpu: 2 })).toMatchObject({
      status: 409,
      body: { code: 'idempotency_key_reused' },
    });
    for (const bad of ['x'.repeat(256), 'a b']) {
      expect(await keyed(bad)).toMatchObject({
        status: 400,
        body: { code: 'idempotency_key_invalid' },
      });
    }
  });

  test('a failed request frees its key', async () => {
    expect(await keyed('three')).toMatchObject({ status: 503 });
    await harness.addWorker('w1');
    expect(await keyed('three')).toMatchObject({ status: 201 });
  });

  test('keys of different tenants are independent', async () => {
    await harness.addWorker('w1');
    const other = (await harness.signUp()).key;
    const mine = await keyed('four');
    const theirs = await harness.call('POST', '/v1/sandboxes', {
      key: other,
      json: standard,
      headers: { 'idempotency-key': 'four' },
    });
    expect(theirs.body.vm_id).not.toBe(mine.body.vm_id);
  });

  test('after a crash, the retry finds the created sandbox', async () => {
    const worker = await harness.addWorker('w1');
    const first = await keyed('five');
    await harness.sql.query(
      `update idempotency_keys set response = null, locked_until = now() - interval '1 second' where key = 'five'`,
    );
    const second = await keyed('five');
    expect(second.text).toBe(first.text);
    expect(worker.placed).toHaveLength(1);
  });

  test('the sandbox is created even when the caller leaves, so that the retry finds it', async () => {
    const worker = await harness.addWorker('w1');
    const controller = new AbortController();
    const release = Promise.withResolvers<void>();
    worker.beforeCreated = async () => {
      controller.abort();
      await release.promise;
    };
    const leaving = harness.call('POST', '/v1/sandboxes', {
      key,
      json: standard,
      headers: { 'idempotency-key': 'six' },
      signal: controller.signal,
    });
    await expect(leaving).rejects.toThrow();
    release.resolve();
    expect(await keyed('six')).toMatchObject({ status: 201 });
    expect(worker.placed).toHaveLength(1);
  });
});
