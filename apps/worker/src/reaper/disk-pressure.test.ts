import { beforeEach, describe, expect, it } from 'vitest';
import { CoreHarness } from '../../test/core-harness.ts';
import { MemoryHost } from '../../test/memory-host.ts';
import { placement } from '../../test/placement.ts';
import { silentLogger } from '../../test/silent-logger.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';
import { DiskPressure } from './disk-pressure.ts';

const NEVER = new AbortController().signal;
let host: MemoryHost;
let core: CoreHarness;
let pressure: DiskPressure;

beforeEach(() => {
  host = new MemoryHost();
  core = new CoreHarness(host);
  pressure = new DiskPressure({
    registry: core.registry,
    machine: host,
    logger: silentLogger,
    onFault: (error) => core.faults.push(error),
  });
});

async function create(vmId: string, tenantId: string, usedMib: number): Promise<Sandbox> {
  const request = { ...placement(), vm_id: vmId, tenant_id: tenantId };
  const sandbox = await core.creator.create(request, NEVER);
  host.vmOf(vmId).diskUsedMib = usedMib;
  return sandbox;
}

describe('a disk that is nearly full', () => {
  it('ends the largest sandbox of the tenant who holds most, one at a time, until there is room', async () => {
    const modest = await create('vm_modest', 'usr_modest', 900);
    const [small, large] = [
      await create('vm_small', 'usr_greedy', 500),
      await create('vm_large', 'usr_greedy', 800),
    ];
    host.diskMib = 600;
    await pressure.pass();
    expect(large.state).toBe('running');
    host.diskMib = 500;
    await pressure.pass();
    expect(large.record()).toMatchObject({ state: 'destroyed', end_reason: 'disk_pressure' });
    expect([small.state, modest.state]).toEqual(['running', 'running']);
    await pressure.pass();
    expect(modest.state).toBe('destroyed');
    host.diskMib = 600;
    await pressure.pass();
    expect(small.state).toBe('running');
    expect(core.faults).toEqual([]);
  });

  it('ends nobody when others filled the disk', async () => {
    const sandboxes = [await create('vm_a', 'usr_a', 200), await create('vm_b', 'usr_a', 300)];
    host.diskMib = 0;
    await pressure.pass();
    expect(sandboxes.map(({ state }) => state)).toEqual(['running', 'running']);
  });

  it('goes on when a sandbox cannot be measured or ended', async () => {
    const stuck = await create('vm_stuck', 'usr_a', 900);
    host.vmOf(stuck.id).faults.destroys = 3;
    host.diskMib = 10;
    await pressure.pass();
    expect(core.faults).toHaveLength(1);
    expect(stuck.endReason).toBe('disk_pressure');
  });
});
