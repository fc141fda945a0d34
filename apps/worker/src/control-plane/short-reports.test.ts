import { WORKER_TIMES } from '@svc/contract';
import { beforeEach, describe, expect, it } from 'vitest';
import type { Harness } from '../../test/harness.ts';
import { startHarness } from '../../test/start-harness.ts';
import { systemClock } from '../clock.ts';

let harness: Harness;
/** How much later than in this process it is for the worker, in milliseconds. */
let later: number;

beforeEach(async () => {
  later = 0;
  const clock = { ...systemClock, monotonic: () => systemClock.monotonic() + later };
  harness = await startHarness({ clock });
});

/** Lets the control plane take short reports, and waits for as many of them from now on. */
async function nextLeases(count: number) {
  const leases = shortReports();
  const from = leases.length;
  await expect.poll(() => leases.length).toBeGreaterThanOrEqual(from + count);
}

/** All short reports. The control plane takes them once this has been called. */
function shortReports() {
  harness.controlPlane.leases ??= [];
  return harness.controlPlane.leases;
}

/** What all short reports said of sandboxes, in order. */
const sandboxesReported = () => shortReports().flatMap(({ sandboxes }) => sandboxes);

async function nextHeartbeats(count: number) {
  const { heartbeats } = harness.controlPlane;
  const from = heartbeats.length;
  await expect.poll(() => heartbeats.length).toBeGreaterThanOrEqual(from + count);
  return heartbeats.slice(from);
}

describe('short reports', () => {
  it('name a sandbox once for each change, and leave out capacity and templates', async () => {
    await nextLeases(1);
    const vmId = await harness.create();
    const last = () => sandboxesReported().at(-1);
    await expect.poll(last).toMatchObject({ vm_id: vmId, state: 'running' });
    await harness.json('POST', `/sandboxes/${vmId}/pause`);
    await expect.poll(last).toMatchObject({ vm_id: vmId, state: 'paused' });
    await harness.json('DELETE', `/sandboxes/${vmId}`);
    await expect.poll(last).toMatchObject({ vm_id: vmId, state: 'destroyed' });
    await nextLeases(3);
    const reported = sandboxesReported().map(({ end_age_ms: _age, ...sandbox }) =>
      JSON.stringify(sandbox),
    );
    expect(reported).toEqual([...new Set(reported)]);
    expect(new Set(shortReports().flatMap(Object.keys))).toEqual(
      new Set(['instance_id', 'free', 'sandboxes']),
    );
    expect(harness.controlPlane.registrations).toHaveLength(1);
  });

  it('carry the templates and the capacity once when an image has changed', async () => {
    await nextLeases(2);
    harness.host.currentImages = harness.host.currentImages.map((image) => ({
      ...image,
      id: 'standard-2',
    }));
    const reported = () =>
      shortReports().flatMap(({ capacity, templates = [] }) =>
        templates.map(({ image }) => [image, capacity?.vcpu]),
      );
    await expect.poll(reported).toEqual([['standard-2', 64]]);
    await nextLeases(3);
    expect(reported()).toEqual([['standard-2', 64]]);
  });

  it('repeat what was not accepted, in a complete report', async () => {
    await nextLeases(1);
    harness.controlPlane.broken = true;
    const vmId = await harness.create();
    const { failed } = harness.controlPlane;
    await expect.poll(() => harness.controlPlane.failed).toBeGreaterThanOrEqual(failed + 2);
    const beats = harness.controlPlane.heartbeats.length;
    harness.controlPlane.broken = false;
    await expect
      .poll(() => harness.controlPlane.heartbeats[beats]?.sandboxes)
      .toMatchObject([{ vm_id: vmId }]);
    await nextLeases(2);
    expect(harness.controlPlane.heartbeats).toHaveLength(beats + 1);
  });

  it('give way to a complete one after a while, and when the control plane asks for one', async () => {
    const vmId = await harness.create();
    await nextLeases(2);
    later += WORKER_TIMES.completeReportMs;
    expect(await nextHeartbeats(1)).toMatchObject([{ sandboxes: [{ vm_id: vmId }] }]);
    await nextLeases(2);
    harness.controlPlane.wantsAll = true;
    expect(await nextHeartbeats(1)).toMatchObject([{ sandboxes: [{ vm_id: vmId }] }]);
  });

  it('carry out orders, and change nothing about quarantine', async () => {
    const [held, ordered] = [await harness.create(), await harness.create()];
    const state = async (vmId: string) => (await harness.json('GET', `/sandboxes/${vmId}`)).body;
    harness.controlPlane.quarantine = [{ vm_id: held, generation: 1 }];
    await expect.poll(() => harness.host.vmOf(held).paused).toBe(true);
    await nextLeases(2);
    harness.controlPlane.orders = [{ vm_id: ordered, generation: 1, reason: 'deleted' }];
    await expect.poll(() => state(ordered)).toMatchObject({ state: 'destroyed' });
    expect(harness.host.vmOf(held).paused).toBe(true);
  });

  it('are complete ones for a control plane that does not know them', async () => {
    const vmId = await harness.create();
    const reported = () =>
      harness.controlPlane.heartbeats.slice(-3).map(({ sandboxes }) => sandboxes[0]?.vm_id);
    await expect.poll(reported).toEqual([vmId, vmId, vmId]);
    expect(harness.controlPlane.registrations).toHaveLength(1);
  });
});
