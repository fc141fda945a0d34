import { createTokenMinter } from '@svc/service-kit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Harness, placement } from '../../test/harness.ts';
import { until } from '../../test/until.ts';

let harness: Harness;

beforeAll(async () => {
  harness = await Harness.start({ uploadBytes: 1000 });
});

afterAll(() => harness[Symbol.asyncDispose]());

async function create(changes: Parameters<typeof placement>[0] = {}): Promise<string> {
  const request = placement(changes);
  const { status } = await harness.json('POST', '/sandboxes', request);
  expect(status).toBe(201);
  return request.vm_id;
}

async function exec(id: string, body: unknown) {
  return harness.json<{ output: string; code: string }>('POST', `/sandboxes/${id}/exec`, body);
}

describe('who may call', () => {
  it.each([
    ['no token', () => ''],
    ['a token of another secret', () => 'eyJhbGciOiJIUzI1NiJ9.e30.c2lnbmF0dXJl'],
  ])('refuses %s', async (_name, token) => {
    const response = await harness.call('GET', '/sandboxes', { token: token() });
    expect(response.statusCode).toBe(401);
    await response.body.dump();
  });

  it('refuses a token for another worker and one of another issuer', async () => {
    for (const [issuer, audience] of [
      ['svc-control-plane', 'worker-2'],
      ['worker-1', 'worker-1'],
    ] as const) {
      const token = await createTokenMinter(harness.secret, issuer)(audience);
      const response = await harness.call('GET', '/sandboxes', { token });
      expect(response.statusCode).toBe(401);
      await response.body.dump();
    }
  });
});

describe('create, get, list and delete', () => {
  it('answers the running record and shows it again', async () => {
    const request = placement({ tenant_id: 'usr_record', env_vars: { A: 'b' } });
    const created = await harness.json('POST', '/sandboxes', request);
    expect(created.status).toBe(201);
    expect(created.body).toMatchObject({
      vm_id: request.vm_id,
      generation: 1,
      state: 'running',
      vcpu: 1,
      memory_mib: 512,
      rootfs: 'standard-1.img',
      host_port: 22,
      created_at: request.created_at,
      active_connections: 0,
    });
    const shown = await harness.json('GET', `/sandboxes/${request.vm_id}`);
    expect(shown.body).toMatchObject({ vm_id: request.vm_id, state: 'running', cpu_seconds: 1.5 });
    const mine = await harness.json('GET', '/sandboxes?tenant_id=usr_record');
    expect(mine.body).toMatchObject({ sandboxes: [{ vm_id: request.vm_id }] });
    const [given] = harness.host.vmOf(request.vm_id).given;
    expect(given).toEqual({ hostname: request.vm_id.replace('_', '-'), env: { A: 'b' } });
  });

  it('gives the same sandbox for the same id and generation', async () => {
    const request = placement();
    const before = harness.host.requests.length;
    const answers = await Promise.all(
      [1, 2, 3].map(() => harness.json('POST', '/sandboxes', request)),
    );
    answers.push(await harness.json('POST', '/sandboxes', request));
    expect(answers.map(({ status }) => status)).toEqual([201, 201, 201, 201]);
    expect(harness.host.requests.length - before).toBe(1);
  });

  it('refuses an older generation and replaces with a newer one', async () => {
    const id = await create({ generation: 2 });
    const first = harness.host.vmOf(id);
    const old = await harness.json('POST', '/sandboxes', placement({ vm_id: id, generation: 1 }));
    expect(old).toMatchObject({ status: 409, body: { code: 'stale_generation' } });
    await create({ vm_id: id, generation: 3 });
    expect(first.isGone).toBe(true);
    expect(harness.host.vmOf(id).labels).toMatchObject({ generation: 3, state: 'running' });
  });

  it('does not bring an ended sandbox back', async () => {
    const id = await create();
    await harness.json('DELETE', `/sandboxes/${id}`);
    const again = await harness.json('POST', '/sandboxes', placement({ vm_id: id }));
    expect(again).toMatchObject({ status: 409, body: { code: 'sandbox_not_running' } });
  });

  it('refuses an unknown template', async () => {
    const request = placement({ template: 'nonesuch' });
    const answer = await harness.json('POST', '/sandboxes', request);
    expect(answer).toMatchObject({ status: 501, body: { code: 'unknown_template' } });
    const unknown = await harness.json('GET', `/sandboxes/${request.vm_id}`);
    expect(unknown.status).toBe(404);
  });

  it('deletes again and again, keeps the reason, and shows the record', async () => {
    const id = await create();
    const vm = harness.host.vmOf(id);
    for (const reason of ['credits_exhausted', 'deleted']) {
      const answer = await harness.json('DELETE', `/sandboxes/${id}?reason=${reason}`);
      expect(answer).toMatchObject({
        status: 200,
        body: { state: 'destroyed', end_reason: 'credits_exhausted' },
      });
    }
    expect(vm.isGone).toBe(true);
    const shown = await harness.json('GET', `/sandboxes/${id}`);
    expect(shown.body).toMatchObject({ state: 'destroyed', ended_at: expect.any(String) });
    const missing = await harness.json('DELETE', '/sandboxes/vm_none');
    expect(missing).toMatchObject({ status: 404, body: { code: 'sandbox_not_found' } });
  });
});

describe('exec', () => {
  it('answers output of both streams, exit code and duration', async () => {
    const id = await create();
    const answer = await exec(id, {
      command: 'printf "$X in $PWD"; echo oops >&2; exit 3',
      env: { X: 'hé' },
      cwd: '/tmp',
    });
    expect(answer.status).toBe(200);
    expect(answer.body).toMatchObject({
      exit_code: 3,
      truncated: false,
      duration_ms: expect.any(Number),
    });
    expect(answer.body.output).toContain('hé in /tmp');
    expect(answer.body.output).toContain('oops\n');
  });

  it('keeps 10 MiB and lets the command go on', async () => {
    const id = await create();
    const { body } = await exec(id, { command: 'head -c 12000000 /dev/zero | tr "\\0" a; exit 5' });
    expect(body).toMatchObject({ exit_code: 5, truncated: true });
    expect(body.output.length).toBe(10 * 1024 * 1024);
  });

  it('kills the process group when the time is up', async () => {
    const id = await create();
    const { body } = await exec(id, {
      command: 'echo begun; sleep 600 & sleep 600',
      timeout_seconds: 0.2,
    });
    expect(body).toMatchObject({ exit_code: 124, timed_out: true, output: 'begun\n' });
    expect(harness.host.vmOf(id).groups.size).toBe(0);
  });

  it('kills the process group when the caller leaves', async () => {
    const id = await create();
    const vm = harness.host.vmOf(id);
    const caller = new AbortController();
    const call = harness.call('POST', `/sandboxes/${id}/exec`, {
      json: { command: 'sleep 600 & sleep 600' },
      signal: caller.signal,
    });
    await until(() => expect(vm.groups.size).toBe(1));
    caller.abort();
    await expect(call).rejects.toThrow();
    await until(() => expect(vm.groups.size).toBe(0));
  });

  it('ends with the sandbox', async () => {
    const id = await create();
    const vm = harness.host.vmOf(id);
    const running = exec(id, { command: 'sleep 600' });
    await until(() => expect(vm.groups.size).toBe(1));
    await harness.json('DELETE', `/sandboxes/${id}`);
    expect(await running).toMatchObject({ status: 409, body: { code: 'sandbox_not_running' } });
  });

  it('runs at most 64 commands at once', async () => {
    const id = await create();
    const vm = harness.host.vmOf(id);
    const callers = new AbortController();
    const calls = Array.from({ length: 64 }, () =>
      harness
        .call('POST', `/sandboxes/${id}/exec`, {
          json: { command: 'sleep 600' },
          signal: callers.signal,
        })
        .catch(() => undefined),
    );
    await until(() => expect(vm.groups.size).toBe(64));
    expect(await exec(id, { command: 'true' })).toMatchObject({
      status: 429,
      body: { code: 'too_many_execs' },
    });
    callers.abort();
    await Promise.all(calls);
    await until(async () =>
      expect(await exec(id, { command: 'true' })).toMatchObject({ status: 200 }),
    );
  });

  it('streams events that end with exit', async () => {
    const id = await create();
    const response = await harness.call('POST', `/sandboxes/${id}/exec`, {
      json: { command: 'printf "\\303"; sleep 0.05; printf "\\251"; echo no >&2; exit 4' },
      headers: { accept: 'text/event-stream' },
    });
    expect(response.headers['content-type']).toContain('text/event-stream');
    const text = await response.body.text();
    expect(text).toContain('event: stdout\ndata: {"data":"é"}\n\n');
    expect(text).toContain('event: stderr\ndata: {"data":"no\\n"}\n\n');
    expect(text).toMatch(/event: exit\ndata: \{"exit_code":4,.*"truncated":false\}\n\n$/);
  });

  it('says in the stream when the sandbox ends under the command', async () => {
    const id = await create();
    const vm = harness.host.vmOf(id);
    const response = await harness.call('POST', `/sandboxes/${id}/exec`, {
      json: { command: 'sleep 600' },
      headers: { accept: 'text/event-stream' },
    });
    await until(() => expect(vm.groups.size).toBe(1));
    vm.die();
    expect(await response.body.text()).toContain(
      'event: error\ndata: {"code":"sandbox_not_running"',
    );
  });

  it('answers a plain error when a streamed command cannot begin', async () => {
    const id = await create();
    await harness.json('DELETE', `/sandboxes/${id}`);
    const response = await harness.call('POST', `/sandboxes/${id}/exec`, {
      json: { command: 'true' },
      headers: { accept: 'text/event-stream' },
    });
    expect(response.statusCode).toBe(409);
    await response.body.dump();
  });

  it.each([{}, { command: '' }, { command: 7 }])('refuses %j', async (body) => {
    const id = await create();
    expect(await exec(id, body)).toMatchObject({ status: 400, body: { code: 'command_required' } });
  });
});

describe('files', () => {
  const OCTETS = { 'content-type': 'application/octet-stream' };
  const files = (id: string, path: string) =>
    `/sandboxes/${id}/files?path=${encodeURIComponent(path)}`;
  const put = async (id: string, path: string, body: Buffer | null, headers = OCTETS) => {
    const response = await harness.call('POST', files(id, path), { body, headers });
    return { status: response.statusCode, body: await response.body.json() };
  };

  it('brings bytes in and out again', async () => {
    const id = await create();
    const bytes = Buffer.from([0, 255, 10, 128]);
    expect(await put(id, '/tmp/x', bytes)).toEqual({ status: 200, body: { status: 'uploaded' } });
    const response = await harness.call('GET', files(id, '/tmp/x'));
    expect(response.headers).toMatchObject({
      'content-length': '4',
      'content-type': 'application/octet-stream',
    });
    expect(Buffer.from(await response.body.arrayBuffer())).toEqual(bytes);
  });

  it.each([
    ['/missing/x', 400, 'parent_not_found'],
    ['/full', 507, 'disk_full'],
    ['/a/../b', 400, 'path_traversal'],
    ['a', 400, 'path_not_absolute'],
    ['', 400, 'path_required'],
  ])('answers an upload to %j with %i %s', async (path, status, code) => {
    const id = await create();
    expect(await put(id, path, Buffer.from('x'))).toMatchObject({ status, body: { code } });
  });

  it.each([
    ['/none', 404, 'file_not_found'],
    ['/', 400, 'is_directory'],
  ])('answers a download of %j with %i %s', async (path, status, code) => {
    const id = await create();
    const response = await harness.call('GET', files(id, path));
    expect(response.statusCode).toBe(status);
    expect(await response.body.json()).toMatchObject({ code });
  });

  it('refuses an empty body, another media type and a body that is too large', async () => {
    const id = await create();
    expect(await put(id, '/x', null)).toMatchObject({ body: { code: 'missing_body' } });
    expect(await put(id, '/x', Buffer.alloc(0))).toMatchObject({ body: { code: 'missing_body' } });
    const text = { 'content-type': 'text/plain' };
    expect(await put(id, '/x', Buffer.from('x'), text)).toMatchObject({ status: 415 });
    expect(await put(id, '/x', Buffer.alloc(1001))).toMatchObject({ status: 413 });
    expect(harness.host.vmOf(id).files.has('/x')).toBe(false);
  });

  it('counts a body of unannounced length', async () => {
    const id = await create();
    async function* body() {
      for (let part = 0; part < 20; part += 1) yield Buffer.alloc(100);
    }
    const { Readable } = await import('node:stream');
    const response = await harness.call('POST', files(id, '/x'), {
      body: Readable.from(body()),
      headers: OCTETS,
    });
    expect(response.statusCode).toBe(413);
    await response.body.dump();
    expect(harness.host.vmOf(id).files.has('/x')).toBe(false);
  });

  it('leaves nothing of an upload whose sender breaks off', async () => {
    const id = await create();
    const sender = new AbortController();
    const { Readable } = await import('node:stream');
    const body = new Readable({ read() {} });
    body.push('half');
    body.on('error', () => undefined);
    const call = harness.call('POST', files(id, '/half'), {
      body,
      headers: OCTETS,
      signal: sender.signal,
    });
    sender.abort();
    await expect(call).rejects.toThrow();
    expect(harness.host.vmOf(id).files.has('/half')).toBe(false);
    expect(await exec(id, { command: 'true' })).toMatchObject({ status: 200 });
  });
});

describe('pause, resume, cancel and logs', () => {
  it('pauses and resumes, each again and again', async () => {
    const id = await create();
    const vm = harness.host.vmOf(id);
    for (const expected of ['paused', 'paused']) {
      const answer = await harness.json('POST', `/sandboxes/${id}/pause`);
      expect(answer).toMatchObject({ status: 200, body: { state: expected } });
    }
    expect(vm).toMatchObject({ paused: true, pauses: 1, labels: { state: 'paused' } });
    for (const expected of ['running', 'running']) {
      const answer = await harness.json('POST', `/sandboxes/${id}/resume`);
      expect(answer).toMatchObject({ status: 200, body: { state: expected } });
    }
    expect(vm).toMatchObject({ paused: false, resumes: 1, labels: { state: 'running' } });
  });

  it('resumes a paused sandbox once for all who use it', async () => {
    const id = await create();
    const vm = harness.host.vmOf(id);
    await harness.json('POST', `/sandboxes/${id}/pause`);
    const answers = await Promise.all(
      Array.from({ length: 5 }, () => exec(id, { command: 'echo hi' })),
    );
    expect(answers.map(({ body }) => body.output)).toEqual(Array(5).fill('hi\n'));
    expect(vm.resumes).toBe(1);
    await harness.json('POST', `/sandboxes/${id}/pause`);
    vm.files.set('/f', Buffer.from('f'));
    const file = await harness.call('GET', `/sandboxes/${id}/files?path=/f`);
    expect(await file.body.text()).toBe('f');
    expect(vm.resumes).toBe(2);
  });

  it('stays running when a pause fails, and paused when a resume fails', async () => {
    const id = await create();
    const vm = harness.host.vmOf(id);
    const { MicrovmError } = await import('@svc/microvm');
    vm.faults.pause = new MicrovmError('pause_failed', 'no');
    expect(await harness.json('POST', `/sandboxes/${id}/pause`)).toMatchObject({
      status: 502,
      body: { code: 'guest_unresponsive' },
    });
    expect(await harness.json('GET', `/sandboxes/${id}`)).toMatchObject({
      body: { state: 'running' },
    });
    vm.faults.pause = undefined;
    await harness.json('POST', `/sandboxes/${id}/pause`);
    vm.faults.resume = new MicrovmError('resume_failed', 'no');
    expect(await harness.json('POST', `/sandboxes/${id}/resume`)).toMatchObject({ status: 502 });
    expect(await harness.json('GET', `/sandboxes/${id}`)).toMatchObject({
      body: { state: 'paused' },
    });
  });

  it('pauses and resumes on a full disk', async () => {
    const id = await create();
    harness.host.vmOf(id).faults.label = Object.assign(new Error('full'), { code: 'ENOSPC' });
    expect(await harness.json('POST', `/sandboxes/${id}/pause`)).toMatchObject({ status: 200 });
    expect(await exec(id, { command: 'echo on' })).toMatchObject({ body: { output: 'on\n' } });
  });

  it('cancels only a running sandbox', async () => {
    const id = await create();
    expect(await harness.json('POST', `/sandboxes/${id}/cancel`)).toEqual({
      status: 200,
      body: { vm_id: id, cancelled: false, reason: 'user_request' },
    });
    expect(
      await harness.json('POST', `/sandboxes/${id}/cancel`, { reason: 'nonsense' }),
    ).toMatchObject({ status: 400, body: { code: 'unknown_cancel_reason' } });
    await harness.json('POST', `/sandboxes/${id}/pause`);
    expect(await harness.json('POST', `/sandboxes/${id}/cancel`)).toMatchObject({ status: 409 });
  });

  it('has an empty log before any agent ran', async () => {
    const id = await create();
    expect(await harness.json('GET', `/sandboxes/${id}/logs?lines=5`)).toEqual({
      status: 200,
      body: { content: '', truncated: false, total_bytes: 0 },
    });
    expect(await harness.json('GET', `/sandboxes/${id}/logs?lines=1&bytes=1`)).toMatchObject({
      status: 400,
    });
  });

  it('answers health and metrics', async () => {
    expect(await harness.json('GET', '/health')).toMatchObject({
      body: { status: 'ok', worker_id: 'worker-1', version: '0.1.0' },
    });
    const response = await harness.call('GET', '/../../metrics');
    const text = await response.body.text();
    expect(text).toMatch(/svc_worker_sandboxes\{state="running"\} \d+/);
    expect(text).toContain('svc_worker_create_duration_seconds_count{outcome="created"}');
    expect(text).toMatch(/svc_worker_execs_total \d+/);
  });
});
