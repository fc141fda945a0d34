import { afterEach, describe, expect, it } from 'vitest';
import { Harness } from '../test/harness.ts';
import { MemoryHost } from '../test/memory-host.ts';
import { placement } from '../test/placement.ts';

let harness: Harness;

afterEach(() => harness[Symbol.asyncDispose]());

describe('a shutdown', () => {
  it('ends sandboxes as drained, reports them and leaves no VM', async () => {
    harness = await Harness.start({ host: new MemoryHost(), pool: { standard: 1 } });
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

  it('keeps only running and paused sandboxes when asked to', async () => {
    harness = await Harness.start({ host: new MemoryHost(), pool: { standard: 1 } });
    const { host } = harness;
    const kept = placement();
    await harness.json('POST', '/sandboxes', kept);
    await expect.poll(() => host.live.length).toBe(2);
    host.gate = new Promise(() => undefined);
    const half = harness.json('POST', '/sandboxes', placement({ vcpu: 2 }));
    await expect.poll(() => host.restoring).toBe(1);
    await harness.worker.close({ keepSandboxes: true });
    expect(await half).toMatchObject({ status: 503, body: { code: 'shutting_down' } });
    expect(host.live.map((vm) => vm.labels.vm_id)).toEqual([kept.vm_id]);
  });
});
