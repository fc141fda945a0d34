import { afterEach, describe, expect, it } from 'vitest';
import { Harness, placement } from '../../test/harness.ts';
import { MemoryHost, STANDARD } from '../../test/memory-host.ts';
import type { MemoryMicrovm } from '../../test/memory-microvm.ts';
import { until } from '../../test/until.ts';
import { classify } from './classify.ts';

const harnesses: Harness[] = [];

afterEach(async () => {
  for (const harness of harnesses.splice(0)) await harness[Symbol.asyncDispose]();
});

async function start(host: MemoryHost, pool: Record<string, number> = {}): Promise<Harness> {
  const harness = await Harness.start({ host, pool });
  harnesses.push(harness);
  return harness;
}

/** The VMs as a killed worker leaves them: alive, with their labels, known to no object of the old worker. */
function survivors(host: MemoryHost): MemoryHost {
  return new MemoryHost(host.live);
}

async function vmWith(host: MemoryHost, labels: Record<string, unknown>): Promise<MemoryMicrovm> {
  let made: MemoryMicrovm | undefined;
  host.onRestored = (vm) => {
    made = vm;
  };
  await host.restore({ id: 'm_1', template: 'standard' }, new AbortController().signal);
  if (made === undefined) throw new Error('no VM');
  made.labels = labels;
  return made;
}

const LABELS = {
  version: 1,
  role: 'sandbox',
  vm_id: 'vm_1',
  generation: 3,
  revision: 7,
  tenant_id: 'usr_a',
  state: 'running',
  created_at: '2026-01-01T00:00:00.000Z',
  running_at: '2026-01-01T00:00:01.000Z',
  placement: {
    template: 'standard',
    size: {},
    idle_timeout_seconds: 60,
    max_lifetime_seconds: 7200,
  },
  lifetime_ends_at: Number.MAX_SAFE_INTEGER,
};

describe('after a crash', () => {
  it('running and paused sandboxes go on with their deadlines, usable at once', async () => {
    const first = await start(new MemoryHost());
    const requests = [placement({ tenant_id: 'usr_b' }), placement({ max_lifetime_seconds: 77 })];
    for (const request of requests) await first.json('POST', '/sandboxes', request);
    const [running = '', paused = ''] = requests.map(({ vm_id }) => vm_id);
    await first.json('POST', `/sandboxes/${paused}/pause`);
    const before = await first.json('GET', `/sandboxes/${running}`);

    const second = await start(survivors(first.host));
    const after = await second.json('GET', `/sandboxes/${running}`);
    expect(after.body).toEqual({ ...before.body, revision: expect.any(Number) });
    expect(after.body.revision).toBeGreaterThan(Number(before.body.revision));
    expect(await second.json('GET', `/sandboxes/${paused}`)).toMatchObject({
      body: { state: 'paused' },
    });
    for (const id of [running, paused]) {
      const done = await second.json('POST', `/sandboxes/${id}/exec`, { command: 'echo on' });
      expect(done.body).toMatchObject({ output: 'on\n' });
    }
    expect(second.host.vmOf(paused).labels).toMatchObject({
      placement: { max_lifetime_seconds: 77 },
    });
    const [registration] = second.controlPlane.registrations;
    expect(registration?.sandboxes.map(({ vm_id }) => vm_id).sort()).toEqual([running, paused]);
  });

  it('idle VMs return to the pool, where they are still wanted', async () => {
    const host = new MemoryHost();
    const idle = await vmWith(host, { version: 1, role: 'pool' });
    const second = await start(survivors(host), { standard: 1 });
    await second.json('POST', '/sandboxes', placement());
    expect(idle.labels).toMatchObject({ role: 'sandbox' });

    const others = new MemoryHost();
    const unwanted = await vmWith(others, { version: 1, role: 'pool' });
    await start(others);
    await until(() => expect(unwanted.isGone).toBe(true));

    const replaced = new MemoryHost();
    const old = await vmWith(replaced, { version: 1, role: 'pool' });
    replaced.currentImages = [{ ...STANDARD, rootfs: 'standard-2.img' }];
    await start(replaced, { standard: 1 });
    await until(() => expect(old.isGone).toBe(true));
  });

  it.each([
    ['no labels', {}],
    ['incomplete labels', { ...LABELS, tenant_id: undefined }],
    ['labels of another version', { ...LABELS, version: 2 }],
  ])('a VM with %s is destroyed', async (_name, labels) => {
    const host = new MemoryHost();
    const vm = await vmWith(host, labels);
    const harness = await start(host);
    await until(() => expect(vm.isGone).toBe(true));
    expect(await harness.json('GET', '/sandboxes')).toMatchObject({ body: { sandboxes: [] } });
  });

  it.each([
    ['half made', { ...LABELS, state: 'configuring' }, 'boot_failed'],
    ['half ended', { ...LABELS, end_reason: 'idle_timeout' }, 'idle_timeout'],
    ['stopping', { ...LABELS, state: 'stopping', end_reason: 'deleted' }, 'deleted'],
    ['over its lifetime', { ...LABELS, lifetime_ends_at: 1 }, 'max_lifetime'],
  ])('a sandbox that was %s is ended and reported', async (_name, labels, reason) => {
    const host = new MemoryHost();
    const vm = await vmWith(host, labels);
    const harness = await start(host);
    await until(async () =>
      expect(await harness.json('GET', '/sandboxes/vm_1')).toMatchObject({
        body: { state: 'destroyed', end_reason: reason },
      }),
    );
    expect(vm.isGone).toBe(true);
  });

  it('only the newest of two generations goes on', async () => {
    const host = new MemoryHost();
    const newer = await vmWith(host, LABELS);
    const older = await vmWith(host, { ...LABELS, generation: 2 });
    const harness = await start(host);
    await until(() => expect(older.isGone).toBe(true));
    expect(newer.isGone).toBe(false);
    expect(await harness.json('GET', '/sandboxes/vm_1')).toMatchObject({
      body: { generation: 3, state: 'running' },
    });
  });
});

describe('classify', () => {
  it.each([
    ['running', false, 'running'],
    ['running', true, 'paused'],
    ['paused', false, 'running'],
    ['paused', true, 'paused'],
  ])('believes the VM when its label says %s and paused is %s', (label, paused, state) => {
    expect(classify({ labels: { ...LABELS, state: label }, paused })).toMatchObject({
      kind: 'keep',
      progress: { state },
    });
  });
});

describe('an orderly end', () => {
  it('ends sandboxes as drained, tells the control plane, and leaves no VM', async () => {
    const harness = await start(new MemoryHost(), { standard: 1 });
    const request = placement();
    await harness.json('POST', '/sandboxes', request);
    await harness.worker.close({ keepSandboxes: false });
    expect(harness.host.live).toEqual([]);
    expect(harness.controlPlane.events.at(-1)).toMatchObject({
      vm_id: request.vm_id,
      state: 'destroyed',
      end_reason: 'drained',
    });
  });

  it('keeps running and paused sandboxes when asked to, and nothing else', async () => {
    const harness = await start(new MemoryHost(), { standard: 1 });
    const { host } = harness;
    const kept = placement();
    await harness.json('POST', '/sandboxes', kept);
    await until(() => expect(host.live.length).toBe(2));
    host.gate = new Promise(() => undefined);
    const half = harness.json('POST', '/sandboxes', placement({ vcpu: 2 }));
    await until(() => expect(host.restoring).toBe(1));
    await harness.worker.close({ keepSandboxes: true });
    expect(await half).toMatchObject({ status: 503, body: { code: 'shutting_down' } });
    expect(host.live.map((vm) => vm.labels.vm_id)).toEqual([kept.vm_id]);
  });
});
