import { beforeEach, describe, expect, it } from 'vitest';
import { CoreHarness } from '../../test/core-harness.ts';
import { MemoryHost } from '../../test/memory-host.ts';
import { placement } from '../../test/placement.ts';

const NEVER = new AbortController().signal;
let host: MemoryHost;
let core: CoreHarness;

beforeEach(() => {
  host = new MemoryHost();
  core = new CoreHarness(host);
});

function nothingIsLeft(): void {
  expect(host.live).toEqual([]);
  expect(core.capacity.free).toEqual({ vcpu: 64, memoryMib: 65_536, diskMib: 131_072 });
}

describe('a teardown', () => {
  it('starts when the VM process dies', async () => {
    const sandbox = await core.creator.create(placement(), NEVER);
    host.vmOf(sandbox.id).die();
    await expect
      .poll(() => sandbox.record())
      .toMatchObject({ state: 'destroyed', end_reason: 'worker_lost' });
    nothingIsLeft();
  });

  it('is retried when the VM cannot be destroyed, and can be repeated after it has failed', async () => {
    const sandbox = await core.creator.create(placement(), NEVER);
    const { faults } = host.vmOf(sandbox.id);
    faults.destroys = 2;
    await sandbox.end('deleted');
    expect(sandbox.state).toBe('destroyed');
    const other = await core.creator.create(placement(), NEVER);
    host.vmOf(other.id).faults.destroys = 3;
    await expect(other.end('deleted')).rejects.toThrow('cannot destroy');
    expect(other.state).toBe('stopping');
    await other.end('idle_timeout');
    expect(other.record()).toMatchObject({ state: 'destroyed', end_reason: 'deleted' });
  });

  it('succeeds although the label cannot be written', async () => {
    const sandbox = await core.creator.create(placement(), NEVER);
    host.vmOf(sandbox.id).faults.label = new Error('disk full');
    await sandbox.end('deleted');
    expect(sandbox.state).toBe('destroyed');
    nothingIsLeft();
  });

  it('aborts a pause in progress', async () => {
    const sandbox = await core.creator.create(placement(), NEVER);
    const vm = host.vmOf(sandbox.id);
    vm.pause = (signal) =>
      new Promise((_resolve, reject) =>
        signal.addEventListener('abort', () => reject(signal.reason)),
      );
    const pause = sandbox.power.pause();
    pause.catch(() => undefined);
    await sandbox.end('deleted');
    await expect(pause).rejects.toMatchObject({ code: 'sandbox_not_running' });
    expect(sandbox.state).toBe('destroyed');
  });
});
