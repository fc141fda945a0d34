import { describe, expect, it } from 'vitest';
import { placement } from '../../test/placement.ts';
import { startHarness } from '../../test/start-harness.ts';

describe('the registration with the control plane', () => {
  it('sends address, certificate, capacity and templates', async () => {
    const { worker, controlPlane } = await startHarness();
    expect(controlPlane.registrations).toEqual([
      {
        worker_id: 'worker-1',
        url: worker.url,
        certificate: expect.stringContaining('BEGIN CERTIFICATE'),
        version: '0.1.0',
        instance_id: expect.stringMatching(/^[0-9a-f]{32}$/),
        capacity: { vcpu: 64, memory_mib: 65_536, disk_mib: 131_072 },
        templates: [
          {
            template: 'standard',
            image: 'standard-1',
            ready: true,
            vcpu: 1,
            memory_mib: 512,
            disk_mib: 1024,
            agents: [{ kind: 'codex', version: '1.2.3' }],
          },
        ],
        sandboxes: [],
      },
    ]);
  });

  it('carries out orders of a newer control plane, whatever their reason', async () => {
    const harness = await startHarness();
    const [ordered, deleted] = [await harness.create(), await harness.create()];
    const vm = harness.host.vmOf(ordered);
    harness.controlPlane.orders = [{ vm_id: ordered, generation: 1, reason: 'a later reason' }];
    await expect.poll(() => vm.isGone).toBe(true);
    const { status, body } = await harness.json('DELETE', `/sandboxes/${deleted}?reason=later`);
    expect({ status, body }).toMatchObject({ status: 200, body: { end_reason: 'deleted' } });
    await expect
      .poll(() => harness.controlPlane.events.filter(({ state }) => state === 'destroyed'))
      .toMatchObject([{ end_reason: 'deleted' }, { end_reason: 'deleted' }]);
  });

  it('sends heartbeats with the free capacity and the live sandboxes', async () => {
    const harness = await startHarness({ pool: { standard: 1 } });
    const request = placement({ memory_mib: 1024 });
    await harness.json('POST', '/sandboxes', request);
    await expect
      .poll(() => harness.controlPlane.heartbeats.at(-1))
      .toMatchObject({
        // The idle VM counts as free: it is ended when its capacity is needed.
        free: { memory_mib: 65_536 - 1024, disk_mib: 131_072 - 1024 },
        sandboxes: [{ vm_id: request.vm_id, state: 'running', cpu_seconds: 1.5 }],
      });
    harness.host.memoryMib = 1;
    harness.host.diskMib = 1;
    await expect
      .poll(() => harness.controlPlane.heartbeats.at(-1))
      .toMatchObject({
        free: { memory_mib: 0, disk_mib: 0 },
      });
  });

  it('sends changes immediately, without waiting for the next heartbeat', async () => {
    const harness = await startHarness();
    harness.controlPlane.heartbeatMs = 600_000;
    harness.controlPlane.knows = false;
    await expect.poll(() => harness.controlPlane.registrations.length).toBe(2);
    const beats = harness.controlPlane.heartbeats.length;
    const request = placement();
    await harness.json('POST', '/sandboxes', request);
    harness.host.vmOf(request.vm_id).die();
    await expect
      .poll(() => harness.controlPlane.events.at(-1))
      .toMatchObject({
        vm_id: request.vm_id,
        state: 'destroyed',
        end_reason: 'worker_lost',
      });
    expect(harness.controlPlane.heartbeats.length).toBe(beats);
  });

  it('registers again when the control plane has forgotten it, and reports all sandboxes', async () => {
    const harness = await startHarness();
    const request = placement();
    await harness.json('POST', '/sandboxes', request);
    await harness.json('DELETE', `/sandboxes/${request.vm_id}`);
    const { heartbeats } = harness.controlPlane;
    const reported = () =>
      heartbeats.findIndex(({ sandboxes }) => sandboxes[0]?.state === 'destroyed');
    await expect.poll(() => reported()).toBeGreaterThanOrEqual(0);
    await expect.poll(() => heartbeats.slice(reported()).at(-1)?.sandboxes).toEqual([]);
    harness.controlPlane.knows = false;
    await expect
      .poll(() => harness.controlPlane.registrations.at(1)?.sandboxes)
      .toMatchObject([{ vm_id: request.vm_id, state: 'destroyed' }]);
  });

  it('carries out orders to destroy, except those for an older generation', async () => {
    const harness = await startHarness();
    const [ordered, newer] = [placement({ generation: 2 }), placement({ generation: 2 })];
    for (const request of [ordered, newer]) await harness.json('POST', '/sandboxes', request);
    harness.controlPlane.orders = [
      { vm_id: ordered.vm_id, generation: 2, reason: 'credits_exhausted' },
      { vm_id: newer.vm_id, generation: 1, reason: 'deleted' },
      { vm_id: 'vm_unknown', generation: 9, reason: 'deleted' },
    ];
    await expect
      .poll(() => harness.json('GET', `/sandboxes/${ordered.vm_id}`))
      .toMatchObject({
        body: { state: 'destroyed', end_reason: 'credits_exhausted' },
      });
    expect(await harness.json('GET', `/sandboxes/${newer.vm_id}`)).toMatchObject({
      body: { state: 'running' },
    });
  });

  it('survives an outage of the control plane', async () => {
    const harness = await startHarness();
    const { controlPlane } = harness;
    const request = placement();
    expect(await harness.json('GET', '/sandboxes')).toMatchObject({ status: 200 });
    await controlPlane.stop();
    expect(await harness.json('POST', '/sandboxes', request)).toMatchObject({ status: 201 });
    controlPlane.broken = true;
    controlPlane.knows = false;
    await controlPlane.start();
    controlPlane.broken = false;
    await expect
      .poll(() => controlPlane.registrations.at(-1)?.sandboxes)
      .toMatchObject([{ state: 'running' }]);
    await controlPlane.stop();
    await harness.json('POST', `/sandboxes/${request.vm_id}/pause`);
    await controlPlane.start();
    await expect
      .poll(() => controlPlane.events.at(-1) ?? controlPlane.heartbeats.at(-1)?.sandboxes[0])
      .toMatchObject({ vm_id: request.vm_id, state: 'paused' });
  });

  it('rejects `ready` when the worker ends before it is registered', async () => {
    const harness = await startHarness({ withoutControlPlane: true });
    await harness.worker.close({ keepSandboxes: false });
    await expect(harness.worker.ready).rejects.toThrow('ended before');
  });
});
