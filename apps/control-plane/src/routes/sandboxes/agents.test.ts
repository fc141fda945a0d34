import type { WorkerDouble } from '@svc/worker-double';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { Harness } from '../../../test/harness.ts';

const KEY = 'canary-of-the-llm-key';
const HEADER = 'Bearer canary-of-the-header';
const STANDARD = { template: 'standard' };
const CLAUDE = { ...STANDARD, agent: 'claude-code', llm_key: KEY };
const DEICTIC = { ...STANDARD, agent: 'deictic', llm_key: KEY };

/** The last lines of a text that ends in a line feed. */
const lastLines = (text: string, count: number) =>
  `${text.split('\n').slice(0, -1).slice(-count).join('\n')}\n`;

let harness: Harness;
let key: string;
let worker: WorkerDouble;

beforeAll(async () => {
  harness = await Harness.start({ SVC_EGRESS_ALLOW_HOSTS: 'allowed.internal:8443' });
  key = (await harness.signUp()).key;
});
afterAll(() => harness?.[Symbol.asyncDispose]());
beforeEach(async () => {
  await harness.reset();
  worker = await harness.addWorker('w1');
});

const create = (json: object) => harness.call('POST', '/v1/sandboxes', { key, json });
const record = async (vmId: unknown) =>
  (await harness.call('GET', `/v1/sandboxes/${vmId}`, { key })).body;
const secretsOf = (vmId: unknown, from = worker) =>
  from.ask(harness.plane.url, 'GET', `/sandboxes/${vmId}/agent-secrets`);

describe('a one-shot agent', () => {
  test('is placed with its task but without its secrets', async () => {
    const app_json = { name: 'a', capability_sets: [{ name: 'c', agents: [{ name: 'x' }] }] };
    const { status, text, body } = await create({
      ...CLAUDE,
      task: 'say hello',
      session_id: 'earlier',
      app_json,
      env_vars: { A: 'b', LLM_BASE_URL: 'https://allowed.internal:8443/v1' },
      persistence_url: 'https://allowed.internal:8443/state',
      persistence_auth_header: HEADER,
    });
    expect(status, text).toBe(201);
    expect(worker.placed[0]).toMatchObject({
      placement: { size: { memory_mib: 1024 } },
      env_vars: { A: 'b' },
    });
    expect(worker.placed[0]?.env_vars).toEqual({ A: 'b' });
    expect(worker.placed[0]?.placement.agent).toEqual({
      kind: 'claude-code',
      mode: 'one_shot',
      vendor: 'anthropic',
      model: 'claude-sonnet-5-5',
      wire_version: 2,
      resume_id: 'earlier',
      persistence_url: 'https://allowed.internal:8443/state',
    });
    expect(worker.placed[0]?.agent_input).toEqual({ app: app_json, task: 'say hello' });
    expect(await (await secretsOf(body.vm_id)).json()).toEqual({
      llm: { api_key: KEY, base_url: 'https://allowed.internal:8443/v1' },
      env: {},
      persistence_auth_header: HEADER,
    });
    const shown = [text, JSON.stringify(worker.placed), JSON.stringify(await record(body.vm_id))];
    for (const canary of [KEY, 'canary-of-the-header']) {
      expect([...shown, ...harness.logLines].join()).not.toContain(canary);
      expect(await harness.dump()).not.toContain(canary);
    }
  });

  test('shows its kind and its outcome', async () => {
    const { body } = await create({ ...DEICTIC, model: 'claude-x', task: 't' });
    expect(await record(body.vm_id)).toMatchObject({ agent: 'deictic' });
    const vmId = String(body.vm_id);
    await worker.event(harness.plane.url, worker.change(vmId, { agent_status: 'running' }));
    expect(await record(vmId)).toMatchObject({ agent_status: 'running' });
    expect(await record(vmId)).not.toHaveProperty('agent_exit_code');
    const ended = worker.change(vmId, { agent_status: 'failed', agent_exit_code: 3 });
    await worker.event(harness.plane.url, ended);
    expect(await record(vmId)).toMatchObject({ agent_status: 'failed', agent_exit_code: 3 });
  });

  test('keeps its status when its end is the last report', async () => {
    const { body } = await create({ ...DEICTIC, model: 'claude-x', task: 't' });
    const vmId = String(body.vm_id);
    worker.change(vmId, { agent_status: 'completed', agent_exit_code: 0 });
    await worker.event(harness.plane.url, worker.end(vmId, 'idle_timeout'));
    expect(await record(vmId)).toMatchObject({
      state: 'destroyed',
      agent_status: 'completed',
      agent_exit_code: 0,
    });
  });

  test.each<[string, (vmId: string) => Promise<unknown>]>([
    ['a DELETE', (vmId) => harness.call('DELETE', `/v1/sandboxes/${vmId}`, { key })],
    ['an event', (vmId) => worker.event(harness.plane.url, worker.end(vmId, 'idle_timeout'))],
    [
      'the heartbeat after an outage of the control plane',
      async (vmId) => {
        worker.end(vmId, 'max_lifetime');
        await worker.heartbeat(harness.plane.url);
      },
    ],
    [
      'the loss of its VM while its worker was down',
      async (vmId) => {
        worker.sandboxes.delete(vmId);
        await harness.sql.query(`update sandboxes set placed_at = now() - interval '1 hour'`);
        await worker.register(harness.plane.url);
      },
    ],
  ])('has failed, without an exit code, when its sandbox ends first: %s', async (_how, end) => {
    const vmId = String((await create({ ...DEICTIC, model: 'claude-x', task: 't' })).body.vm_id);
    await worker.event(harness.plane.url, worker.change(vmId, { agent_status: 'running' }));
    await end(vmId);
    expect(await record(vmId)).toMatchObject({ state: 'destroyed', agent_status: 'failed' });
    expect(await record(vmId)).not.toHaveProperty('agent_exit_code');
  });

  test('keeps the exit code that its worker reported before it was lost', async () => {
    const vmId = String((await create({ ...DEICTIC, model: 'claude-x', task: 't' })).body.vm_id);
    const exited = worker.change(vmId, { agent_status: 'completed', agent_exit_code: 0 });
    await worker.event(harness.plane.url, exited);
    worker.sandboxes.delete(vmId);
    await harness.sql.query(`update sandboxes set placed_at = now() - interval '1 hour'`);
    await worker.heartbeat(harness.plane.url);
    expect(await record(vmId)).toMatchObject({
      end_reason: 'worker_lost',
      agent_status: 'completed',
      agent_exit_code: 0,
    });
  });

  test.each([
    ['claude-x', 'anthropic'],
    ['gpt-x', 'openai'],
    ['o3', 'openai'],
    ['chatgpt-x', 'openai'],
    ['gemini-x', 'google'],
    ['deepseek-x', 'deepseek'],
  ])('of deictic with %s asks %s', async (model, vendor) => {
    expect((await create({ ...DEICTIC, model })).status).toBe(201);
    expect(worker.placed[0]?.placement.agent).toMatchObject({ vendor, model });
  });

  test('of kind deictic uses the endpoint of the customer for an unknown model', async () => {
    expect(await create({ ...DEICTIC, model: 'llama-x' })).toMatchObject({
      status: 400,
      body: { code: 'model_not_allowed' },
    });
    const env_vars = { LLM_BASE_URL: 'https://allowed.internal:8443/v1' };
    expect((await create({ ...DEICTIC, model: 'llama-x', env_vars })).status).toBe(201);
    expect(worker.placed[0]?.placement.agent).toMatchObject({ vendor: 'openai', model: 'llama-x' });
  });

  test('of kind codex uses the default model of its vendor and passes wire version 1 on', async () => {
    const request = { ...STANDARD, agent: 'codex', llm_key: KEY, wire_version: 1 };
    expect((await create(request)).status).toBe(201);
    expect(worker.placed[0]?.placement.agent).toMatchObject({ model: 'gpt-5.5', wire_version: 1 });
  });

  test.each([
    ['claude-code', CLAUDE, ['Read', 'read_file'], '"read_file"'],
    ['codex', { ...STANDARD, agent: 'codex', llm_key: KEY }, ['shell'], '"apply_patch"'],
    ['deictic', { ...DEICTIC, model: 'claude-x' }, ['nothing'], '"nothing"'],
  ])(
    'of kind %s is refused by the name of a tool that it lacks',
    async (_, request, tools, name) => {
      const app_json = {
        name: 'a',
        capability_sets: [{ name: 'c', agents: [{ name: 'x', tools }] }],
      };
      const { status, body } = await create({ ...request, app_json });
      expect({ status, code: body.code }).toEqual({ status: 400, code: 'tool_not_available' });
      expect(body.detail).toContain(name);
      expect(worker.placed).toEqual([]);
    },
  );

  test('is limited to the tools of its app', async () => {
    const agents = [{ name: 'x', tools: ['Read', 'Grep'] }];
    const app_json = { name: 'a', capability_sets: [{ name: 'c', agents }] };
    expect((await create({ ...CLAUDE, app_json })).status).toBe(201);
    expect(worker.placed[0]?.agent_input).toEqual({ app: app_json });
  });

  test('gets the size that the request names', async () => {
    await create({ ...CLAUDE, memory_mib: 2048, vcpu: 2 });
    expect(worker.placed[0]?.placement.size).toMatchObject({ memory_mib: 2048, vcpu: 2 });
  });

  test.each(['http://8.8.8.8/', 'https://127.0.0.1/', 'https://a:b@allowed.internal:8443/', ''])(
    'must not use the endpoint %j',
    async (LLM_BASE_URL) => {
      const answer = await create({ ...CLAUDE, env_vars: { LLM_BASE_URL } });
      expect(answer).toMatchObject({ status: 400, body: { code: 'llm_base_url_refused' } });
    },
  );

  test('without an agent, the variable is an ordinary one', async () => {
    const env_vars = { LLM_BASE_URL: 'http://anything' };
    expect((await create({ ...STANDARD, env_vars })).status).toBe(201);
    expect(worker.placed[0]?.env_vars).toEqual(env_vars);
  });
});

describe('the log of an agent', () => {
  const logs = (vmId: string, query = '') =>
    harness.call('GET', `/v1/sandboxes/${vmId}/logs${query}`, { key });
  const send = (vmId: string, log: string | Buffer, totalBytes?: number, from = worker) =>
    from.ask(
      harness.plane.url,
      'PUT',
      `/sandboxes/${vmId}/log?total_bytes=${totalBytes ?? Buffer.byteLength(log)}`,
      { body: log, headers: { 'content-type': 'application/octet-stream' } },
    );
  const start = async () => String((await create(CLAUDE)).body.vm_id);
  const end = (vmId: string) => worker.event(harness.plane.url, worker.end(vmId, 'idle_timeout'));
  const UNAVAILABLE = { status: 503, body: { code: 'logs_unavailable' } };

  test('that has ended is unavailable, not empty, when nobody has its log', async () => {
    const vmId = await start();
    await end(vmId);
    expect(await logs(vmId)).toMatchObject(UNAVAILABLE);
    worker.sandboxes.clear();
    expect(await logs(vmId)).toMatchObject(UNAVAILABLE);
    await worker.stop();
    const answer = await logs(vmId);
    expect(answer).toMatchObject(UNAVAILABLE);
    expect(answer.headers.get('retry-after')).toBe('5');
  });

  test('outlasts its worker, once the worker has sent it', async () => {
    const vmId = await start();
    expect((await send(vmId, 'early\n')).status).toBe(204);
    expect((await send(vmId, 'one\ntwo 😀', 5_000_000)).status).toBe(204);
    await end(vmId);
    await worker.stop();
    const whole = { content: 'one\ntwo 😀', truncated: true, total_bytes: 5_000_000 };
    expect(await logs(vmId)).toMatchObject({ status: 200, body: whole });
    expect((await logs(vmId, '?lines=1')).body).toMatchObject({ content: 'two 😀' });
    // Three bytes hold no whole character.
    expect((await logs(vmId, '?bytes=3')).body).toMatchObject({ content: '', truncated: true });
    expect((await logs(vmId, '?bytes=5')).body).toMatchObject({ content: ' 😀' });
  });

  const write = (vmId: string, log: string) => worker.keptLogs.set(vmId, log);
  const versions = async (vmId: string) => {
    const of = (table: string) =>
      harness.sql.query(`select xmin::text, ctid::text from ${table} where vm_id = $1`, [vmId]);
    const [log, parts] = [await of('agent_logs'), await of('agent_log_parts')];
    return [...log.rows, ...parts.rows];
  };
  const stored = async (vmId: string) => {
    const { rows } = await harness.sql.query(
      `select count(*)::int as parts, coalesce(sum(octet_length(bytes)), 0)::int as bytes
       from agent_log_parts where vm_id = $1`,
      [vmId],
    );
    return rows[0];
  };

  test('that was shown outlasts its worker, also while its sandbox is not known to be lost', async () => {
    const [vmId, unread] = [await start(), await start()];
    const lines = (count: number) =>
      Array.from({ length: count }, (_, line) => `line ${line} 😀\n`).join('');
    const log = lines(500);
    write(vmId, lines(20));
    expect((await logs(vmId, '?bytes=5')).body.content).toBe('😀\n');
    write(vmId, log);
    // Whatever was written since is stored too, so that nothing is missing between the two.
    expect((await logs(vmId, '?bytes=9')).body.content).toBe('499 😀\n');
    await worker.stop();
    const left = {
      content: lastLines(log, 3),
      truncated: true,
      total_bytes: Buffer.byteLength(log),
    };
    expect(await logs(vmId, '?lines=3')).toMatchObject({ status: 200, body: left });
    expect(String((await logs(vmId)).body.content)).toBe(lastLines(log, 100));
    expect(await logs(unread)).toMatchObject(UNAVAILABLE);
    await harness.sql.query(
      `update sandboxes set state = 'destroyed', end_reason = 'worker_lost', ended_at = now()`,
    );
    expect(await logs(vmId, '?lines=3')).toMatchObject({ status: 200, body: left });
    expect(await logs(unread)).toMatchObject(UNAVAILABLE);
  });

  test('is not stored again when it is read again', async () => {
    const vmId = await start();
    expect(await logs(vmId)).toMatchObject({ body: { content: '' } });
    expect(await versions(vmId)).toEqual([]);
    write(vmId, 'x'.repeat(300_000));
    for (const query of ['?bytes=200000', '?lines=1']) await logs(vmId, query);
    expect(await stored(vmId)).toEqual({ parts: 5, bytes: 300_000 });
    const before = await versions(vmId);
    for (const query of ['?bytes=200000', '?bytes=5', '?lines=1', '']) await logs(vmId, query);
    expect(await versions(vmId)).toEqual(before);
    // Growth changes the last part only.
    write(vmId, 'x'.repeat(300_001));
    await logs(vmId, '?bytes=1');
    const after = await versions(vmId);
    expect(after.filter(({ xmin }) => before.some((row) => row.xmin === xmin))).toHaveLength(4);
  });

  test('is stored up to the last megabyte, however much is shown', async () => {
    const vmId = await start();
    let log = '';
    for (let size = 1; size <= 5; size += 1) {
      log += `${size}`.repeat(600_000);
      write(vmId, log);
      expect((await logs(vmId, '?bytes=10')).body.content).toBe(`${size}`.repeat(10));
    }
    const { parts, bytes } = await stored(vmId);
    expect(parts).toBeLessThanOrEqual(18);
    expect(bytes).toBeLessThanOrEqual(1_048_576 + 65_536);
    await worker.stop();
    const end = await logs(vmId, '?bytes=1048576');
    expect(end.body.content === log.slice(-1_048_576)).toBe(true);
    expect(end.body).toMatchObject({ truncated: true, total_bytes: 3_000_000 });
  });

  test('has no gap after reads that overtake each other', async () => {
    const vmId = await start();
    const log = 'abcdefghij'.repeat(1_000);
    write(vmId, log.slice(0, 5_000));
    const { promise: isRead, resolve: read } = Promise.withResolvers<void>();
    const { promise: overtaken, resolve: overtake } = Promise.withResolvers<void>();
    worker.beforeLog = async () => {
      worker.beforeLog = async () => undefined;
      read();
      await overtaken;
    };
    const slow = logs(vmId, '?bytes=10');
    await isRead;
    write(vmId, log);
    expect((await logs(vmId, '?bytes=20')).body.content).toBe(log.slice(-20));
    overtake();
    const { content, total_bytes } = (await slow).body;
    expect(content).toBe(log.slice(0, Number(total_bytes)).slice(-10));
    await worker.stop();
    const left = String((await logs(vmId, '?bytes=1048576')).body.content);
    expect(log.endsWith(left)).toBe(true);
    expect(left).toContain(String(content));
  });

  test('that was cut off replaces what was shown of it', async () => {
    const vmId = await start();
    write(vmId, 'a long beginning\n');
    await logs(vmId);
    write(vmId, 'short\n');
    expect((await logs(vmId)).body.content).toBe('short\n');
    await worker.stop();
    expect((await logs(vmId)).body).toMatchObject({ content: 'short\n', total_bytes: 6 });
  });

  test('that was shown gives way to the whole one', async () => {
    const vmId = await start();
    write(vmId, 'one\ntwo\nthree\n');
    await logs(vmId, '?lines=1');
    await end(vmId);
    // The worker has not sent it yet, but has more of it than was shown.
    expect((await logs(vmId)).body).toMatchObject({
      content: 'one\ntwo\nthree\n',
      truncated: false,
    });
    expect((await send(vmId, 'one\ntwo\nthree\nfour\n')).status).toBe(204);
    await worker.stop();
    const whole = { content: 'one\ntwo\nthree\nfour\n', truncated: false, total_bytes: 19 };
    expect((await logs(vmId)).body).toMatchObject(whole);
  });

  test('of an exited agent can be read while the worker of its live sandbox is unreachable', async () => {
    const vmId = await start();
    expect(await logs(vmId)).toMatchObject({ status: 200 });
    expect((await send(vmId, 'done\n')).status).toBe(204);
    const other = await start();
    await worker.stop();
    expect(await logs(vmId)).toMatchObject({ status: 200, body: { content: 'done\n' } });
    expect(await logs(other)).toMatchObject(UNAVAILABLE);
  });

  test('is empty where no agent has run, whatever became of the worker', async () => {
    const without = await harness.create(key);
    const unstarted = await start();
    await harness.sql.query('update sandboxes set running_at = null where vm_id = $1', [unstarted]);
    await end(without);
    await end(unstarted);
    await worker.stop();
    for (const vmId of [without, unstarted]) {
      const empty = { content: '', truncated: false, total_bytes: 0 };
      expect(await logs(vmId)).toMatchObject({ status: 200, body: empty });
    }
  });

  test('is accepted only from the worker of a sandbox with an agent and a record', async () => {
    const other = await harness.addWorker('w2', (w) => {
      w.memoryMib = 512;
    });
    const [vmId, old, without] = [await start(), await start(), await harness.create(key)];
    expect((await send(vmId, 'x', 1, other)).status).toBe(404);
    expect((await send(without, 'x')).status).toBe(404);
    expect((await send('%00', 'x')).status).toBe(404);
    expect((await send(vmId, Buffer.alloc(1_048_577))).status).toBe(413);
    expect((await send(vmId, 'xx', 1)).status).toBe(400);
    await send(old, 'x');
    await harness.sql.query(
      `update sandboxes set state = 'destroyed', end_reason = 'deleted',
         ended_at = now() - interval '901 seconds' where vm_id = $1`,
      [old],
    );
    expect((await send(old, 'x')).status).toBe(404);
    expect(await logs(old)).toMatchObject({ status: 404, body: { code: 'sandbox_not_found' } });
  });
});

describe('the secrets of an agent', () => {
  test('are served to the worker that holds the sandbox, while it is alive', async () => {
    const other = await harness.addWorker('w2', (w) => {
      w.memoryMib = 512;
    });
    const { body } = await create(CLAUDE);
    expect((await secretsOf(body.vm_id)).status).toBe(200);
    expect((await secretsOf(body.vm_id, other)).status).toBe(404);
    expect((await secretsOf('vm_none')).status).toBe(404);
    expect((await secretsOf('%00')).status).toBe(404);
    await harness.call('DELETE', `/v1/sandboxes/${body.vm_id}`, { key });
    expect((await secretsOf(body.vm_id)).status).toBe(404);
    expect((await harness.sql.query('select 1 from agent_secrets')).rowCount).toBe(0);
  });

  test('are served to the worker that takes the sandbox over', async () => {
    worker.failures.set('create', 'no_capacity');
    const other = await harness.addWorker('w2', (w) => {
      w.memoryMib = 4096;
    });
    const { body } = await create(CLAUDE);
    expect((await secretsOf(body.vm_id)).status).toBe(404);
    expect((await secretsOf(body.vm_id, other)).status).toBe(200);
  });

  test('are 404 for a sandbox without an agent', async () => {
    expect((await secretsOf(await harness.create(key))).status).toBe(404);
  });

  test('exist when the worker first asks, and not after a failed creation', async () => {
    worker.beforeCreated = async ({ vm_id }) => {
      expect((await secretsOf(vm_id)).status).toBe(200);
      worker.failures.set('create', 'no_capacity');
    };
    expect((await create(CLAUDE)).status).toBe(201);
    expect((await create(CLAUDE)).status).toBe(409);
    expect((await harness.sql.query('select 1 from agent_secrets')).rowCount).toBe(1);
  });
});
