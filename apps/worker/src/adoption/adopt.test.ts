import { describe, expect, it } from 'vitest';
import { LABELS } from '../../test/labels.ts';
import { MemoryHost, STANDARD } from '../../test/memory-host.ts';
import type { MemoryMicrovm } from '../../test/memory-microvm.ts';
import { placement } from '../../test/placement.ts';
import { startHarness } from '../../test/start-harness.ts';

const start = (host: MemoryHost, pool: Record<string, number> = {}) => startHarness({ host, pool });

/** The VMs as a killed worker leaves them: alive and labelled, but unknown to any object of the old worker. */
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

describe('a worker that starts after a crash', () => {
  it('keeps running and paused sandboxes usable, with their deadlines', async () => {
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
      const done = await second.exec(id, { command: 'echo on' });
      expect(done.body).toMatchObject({ output: 'on\n' });
    }
    expect(second.host.vmOf(paused).labels).toMatchObject({
      placement: { max_lifetime_seconds: 77 },
    });
    const [registration] = second.controlPlane.registrations;
    expect(registration?.sandboxes.map(({ vm_id }) => vm_id).sort()).toEqual([running, paused]);
  });

  it('returns idle VMs to the pool unless it is full or their image was replaced', async () => {
    const host = new MemoryHost();
    const idle = await vmWith(host, { version: 1, role: 'pool' });
    const second = await start(survivors(host), { standard: 1 });
    await second.json('POST', '/sandboxes', placement());
    expect(idle.labels).toMatchObject({ role: 'sandbox' });

    const others = new MemoryHost();
    const unwanted = await vmWith(others, { version: 1, role: 'pool' });
    await start(others);
    await expect.poll(() => unwanted.isGone).toBe(true);

    const replaced = new MemoryHost();
    const old = await vmWith(replaced, { version: 1, role: 'pool' });
    replaced.currentImages = [{ ...STANDARD, rootfs: 'standard-2.img' }];
    await start(replaced, { standard: 1 });
    await expect.poll(() => old.isGone).toBe(true);
  });

  it.each([
    ['no labels', {}],
    ['incomplete labels', { ...LABELS, tenant_id: undefined }],
    ['labels of another version', { ...LABELS, version: 2 }],
  ])('destroys a VM with %s', async (_name, labels) => {
    const host = new MemoryHost();
    const vm = await vmWith(host, labels);
    const harness = await start(host);
    await expect.poll(() => vm.isGone).toBe(true);
    expect(await harness.json('GET', '/sandboxes')).toMatchObject({ body: { sandboxes: [] } });
  });

  it.each([
    ['half made', { ...LABELS, state: 'configuring' }, 'boot_failed'],
    ['half ended', { ...LABELS, end_reason: 'idle_timeout' }, 'idle_timeout'],
    ['stopping', { ...LABELS, state: 'stopping', end_reason: 'deleted' }, 'deleted'],
    ['over its lifetime', { ...LABELS, lifetime_ends_at: 1 }, 'max_lifetime'],
  ])('ends and reports a sandbox that was %s', async (_name, labels, reason) => {
    const host = new MemoryHost();
    const vm = await vmWith(host, labels);
    const harness = await start(host);
    await expect
      .poll(() => harness.json('GET', '/sandboxes/vm_1'))
      .toMatchObject({
        body: { state: 'destroyed', end_reason: reason },
      });
    expect(vm.isGone).toBe(true);
  });

  it('keeps only the newer of two generations', async () => {
    const host = new MemoryHost();
    const newer = await vmWith(host, LABELS);
    const older = await vmWith(host, { ...LABELS, generation: 2 });
    const harness = await start(host);
    await expect.poll(() => older.isGone).toBe(true);
    expect(newer.isGone).toBe(false);
    expect(await harness.json('GET', '/sandboxes/vm_1')).toMatchObject({
      body: { generation: 3, state: 'running' },
    });
  });
});
