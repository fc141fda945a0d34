import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Harness } from '../../../test/harness.ts';

let harness: Harness;

beforeAll(async () => {
  harness = await Harness.start();
});

afterAll(() => harness[Symbol.asyncDispose]());

describe('exec', () => {
  it('returns the output of both streams, together and apart, exit code and duration', async () => {
    const id = await harness.create();
    const answer = await harness.exec(id, {
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
    expect(answer.body).toMatchObject({ stdout: 'hé in /tmp', stderr: 'oops\n' });
    expect(answer.body.output).toContain('hé in /tmp');
    expect(answer.body.output).toContain('oops\n');
  });

  it('kills the process group when the time is up', async () => {
    const id = await harness.create();
    const { body } = await harness.exec(id, {
      command: 'echo begun; sleep 600 & sleep 600',
      timeout_seconds: 3,
    });
    expect(body).toMatchObject({ exit_code: 124, timed_out: true, output: 'begun\n' });
    expect(harness.host.vmOf(id).groups.size).toBe(0);
  });

  it('kills the process group when the caller disconnects', async () => {
    const id = await harness.create();
    const vm = harness.host.vmOf(id);
    const caller = new AbortController();
    const call = harness
      .call('POST', `/sandboxes/${id}/exec`, {
        json: { command: 'sleep 600 & sleep 600' },
        signal: caller.signal,
      })
      .then(({ body }) => body.text());
    // The answer may have begun when the caller leaves, or not.
    call.catch(() => undefined);
    await expect.poll(() => vm.groups.size).toBe(1);
    caller.abort();
    await expect(call).rejects.toThrow();
    await expect.poll(() => vm.groups.size).toBe(0);
  });

  it('ends with the sandbox', async () => {
    const id = await harness.create();
    const vm = harness.host.vmOf(id);
    const running = harness.exec(id, { command: 'sleep 600' });
    await expect.poll(() => vm.groups.size).toBe(1);
    await harness.json('DELETE', `/sandboxes/${id}`);
    expect(await running).toMatchObject({ status: 409, body: { code: 'sandbox_not_running' } });
  });

  it('runs at most 64 commands at once', async () => {
    const id = await harness.create();
    const vm = harness.host.vmOf(id);
    const callers = new AbortController();
    const call = async () => {
      const json = { command: 'sleep 600' };
      const { body } = await harness.call('POST', `/sandboxes/${id}/exec`, {
        json,
        signal: callers.signal,
      });
      return body.text();
    };
    const calls = Promise.all(Array.from({ length: 64 }, call));
    // A call that fails ends the wait, with its reason.
    await Promise.race([calls, expect.poll(() => vm.groups.size).toBe(64)]);
    expect(await harness.exec(id, { command: 'true' })).toMatchObject({
      status: 429,
      body: { code: 'too_many_execs' },
    });
    callers.abort();
    await expect(calls).rejects.toThrow();
    await expect.poll(() => harness.exec(id, { command: 'true' })).toMatchObject({ status: 200 });
  });

  it('streams events that end with exit', async () => {
    const id = await harness.create();
    const response = await harness.call('POST', `/sandboxes/${id}/exec`, {
      json: { command: 'printf "\\303"; sleep 0.05; printf "\\251"; echo no >&2; exit 4' },
    });
    expect(response.headers['content-type']).toContain('text/event-stream');
    const text = await response.body.text();
    expect(text).toContain('event: stdout\ndata: {"data":"é"}\n\n');
    expect(text).toContain('event: stderr\ndata: {"data":"no\\n"}\n\n');
    expect(text).toMatch(/event: exit\ndata: \{"exit_code":4,.*"truncated":false\}\n\n$/);
  });

  it('reports in the stream that the sandbox has ended', async () => {
    const id = await harness.create();
    const vm = harness.host.vmOf(id);
    const response = await harness.call('POST', `/sandboxes/${id}/exec`, {
      json: { command: 'sleep 600' },
    });
    await expect.poll(() => vm.groups.size).toBe(1);
    vm.die();
    expect(await response.body.text()).toContain(
      'event: error\ndata: {"code":"sandbox_not_running"',
    );
  });

  it('returns a plain error when a command cannot start', async () => {
    const id = await harness.create();
    await harness.json('DELETE', `/sandboxes/${id}`);
    const response = await harness.call('POST', `/sandboxes/${id}/exec`, {
      json: { command: 'true' },
    });
    expect(response.statusCode).toBe(409);
    await response.body.dump();
  });

  it('refuses a directory that does not exist, before anything runs', async () => {
    const id = await harness.create();
    expect(await harness.exec(id, { command: 'true', cwd: '/no/such/directory' })).toMatchObject({
      status: 400,
      body: { code: 'cwd_not_found' },
    });
    expect(await harness.exec(id, { command: 'pwd', cwd: '/' })).toMatchObject({
      body: { output: '/\n' },
    });
  });

  it.each([{}, { command: '' }, { command: 7 }])('refuses %j', async (body) => {
    const id = await harness.create();
    expect(await harness.exec(id, body)).toMatchObject({
      status: 400,
      body: { code: 'command_required' },
    });
  });
});
