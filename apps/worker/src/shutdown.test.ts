import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
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

describe('a drain', () => {
  const never = new AbortController().signal;

  /** Starts a command that ends when `end` is called. */
  async function command() {
    harness = await Harness.start({ host: new MemoryHost() });
    const id = await harness.create();
    const [begun, ended] = [join(harness.dataDir, 'begun'), join(harness.dataDir, 'ended')];
    const script = `touch ${begun}; until [ -e ${ended} ]; do sleep 0.05; done; echo done`;
    const answer = harness.exec(id, { command: script });
    await expect.poll(() => existsSync(begun)).toBe(true);
    return { id, answer, end: () => writeFile(ended, '') };
  }

  it('tells the control plane, lets a command end, refuses another, and keeps the sandbox', async () => {
    const { id, answer, end } = await command();
    const drained = harness.worker.drain(60_000, never);
    const isAnnounced = () => harness.controlPlane.heartbeats.at(-1)?.draining;
    for (;;) {
      const wasAnnounced = isAnnounced();
      const { status, body } = await harness.exec(id, { command: 'true' });
      if (status === 200) continue;
      expect({ status, body }).toMatchObject({ status: 503, body: { code: 'shutting_down' } });
      // Whatever a control plane sends before it knows is accepted.
      expect(wasAnnounced).toBe(true);
      break;
    }
    expect(await harness.json('GET', `/sandboxes/${id}`)).toMatchObject({ status: 200 });
    await end();
    expect(await answer).toMatchObject({ status: 200, body: { output: 'done\n' } });
    await drained;
    expect(harness.host.live).toHaveLength(1);
  });

  it('waits no longer than its bound', async () => {
    const { answer } = await command();
    await harness.worker.drain(20, never);
    await harness.worker.close({ keepSandboxes: true });
    expect(await answer).toMatchObject({ status: 503, body: { code: 'shutting_down' } });
    expect(harness.host.live).toHaveLength(1);
  });
});
