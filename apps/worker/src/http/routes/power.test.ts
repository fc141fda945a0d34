import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Harness } from '../../../test/harness.ts';

let harness: Harness;

beforeAll(async () => {
  harness = await Harness.start();
});

afterAll(() => harness[Symbol.asyncDispose]());

describe('pause, resume, cancel and logs', () => {
  it('pauses and resumes idempotently', async () => {
    const id = await harness.create();
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

  it('resumes a paused sandbox once for concurrent requests', async () => {
    const id = await harness.create();
    const vm = harness.host.vmOf(id);
    await harness.json('POST', `/sandboxes/${id}/pause`);
    const answers = await Promise.all(
      Array.from({ length: 5 }, () => harness.exec(id, { command: 'echo hi' })),
    );
    expect(answers.map(({ body }) => body.output)).toEqual(Array(5).fill('hi\n'));
    expect(vm.resumes).toBe(1);
    await harness.json('POST', `/sandboxes/${id}/pause`);
    vm.files.set('/f', Buffer.from('f'));
    const file = await harness.call('GET', `/sandboxes/${id}/files?path=/f`);
    expect(await file.body.text()).toBe('f');
    expect(vm.resumes).toBe(2);
  });

  it('stays running after a failed pause, and paused after a failed resume', async () => {
    const id = await harness.create();
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

  it('pauses and resumes with a full disk', async () => {
    const id = await harness.create();
    harness.host.vmOf(id).faults.label = Object.assign(new Error('full'), { code: 'ENOSPC' });
    expect(await harness.json('POST', `/sandboxes/${id}/pause`)).toMatchObject({ status: 200 });
    expect(await harness.exec(id, { command: 'echo on' })).toMatchObject({
      body: { output: 'on\n' },
    });
  });

  it('cancels only a running sandbox', async () => {
    const id = await harness.create();
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

  it('has an empty log without an agent', async () => {
    const id = await harness.create();
    expect(await harness.json('GET', `/sandboxes/${id}/logs?lines=5`)).toEqual({
      status: 200,
      body: { end: '', total_bytes: 0 },
    });
    expect(await harness.json('GET', `/sandboxes/${id}/logs?lines=1&bytes=1`)).toMatchObject({
      status: 400,
    });
  });

  it('serves health and metrics', async () => {
    await harness.create();
    expect(await harness.json('GET', '/health')).toMatchObject({
      body: { status: 'ok', worker_id: 'worker-1', version: '0.1.0' },
    });
    const text = await harness.metrics();
    expect(text).toMatch(/svc_worker_sandboxes\{state="running"\} \d+/);
    expect(text).toContain('svc_worker_create_duration_seconds_count{outcome="created"}');
    expect(text).toMatch(/svc_worker_execs_total \d+/);
  });
});
