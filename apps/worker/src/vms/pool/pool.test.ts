import { MicrovmError } from '@svc/microvm';
import { beforeEach, describe, expect, it } from 'vitest';
import { CoreHarness } from '../../../test/core-harness.ts';
import { LIMITS, MemoryHost, STANDARD } from '../../../test/memory-host.ts';
import { placement } from '../../../test/placement.ts';

const NEVER = new AbortController().signal;
let host: MemoryHost;

beforeEach(() => {
  host = new MemoryHost();
});

describe('the pool', () => {
  it('is filled one VM at a time, and hands a VM over without a restore', async () => {
    const core = new CoreHarness(host, { pool: { standard: 3 } });
    await core.fillPool();
    expect(host.mostRestoring).toBe(1);
    expect(host.live.map((vm) => vm.labels)).toEqual(Array(3).fill({ version: 1, role: 'pool' }));
    const oldest = host.live[0];
    const sandbox = await core.creator.create(placement(), NEVER);
    expect(host.requests.length).toBe(3);
    expect(sandbox.assignedVm()).toBe(oldest);
    expect(host.vmOf(sandbox.id).labels).toMatchObject({ role: 'sandbox', state: 'running' });
  });

  it('takes a VM after its agent runtime has warmed up, or has failed to answer', async () => {
    const warmedUp: string[] = [];
    const core: CoreHarness = new CoreHarness(host, {
      pool: { standard: 2 },
      warmUp: async ({ id }) => {
        expect(core.pool.size('standard')).toBe(warmedUp.length);
        warmedUp.push(id);
        if (warmedUp.length === 2) throw new MicrovmError('guest_unreachable', 'nobody listens');
      },
    });
    await core.fillPool();
    expect(warmedUp).toEqual(host.live.map(({ id }) => id));
  });

  it('is refilled after a hand-over and after a VM has died', async () => {
    const core = new CoreHarness(host, { pool: { standard: 2 } });
    await core.keepPoolWhile(async () => {
      await expect.poll(() => core.pool.size('standard')).toBe(2);
      await core.creator.create(placement(), NEVER);
      host.live.find((vm) => vm.labels.role === 'pool')?.die();
      await expect.poll(() => core.pool.size('standard')).toBe(2);
      expect(host.live.length).toBe(3);
    });
  });

  it('hands each VM to one caller only, even with concurrent callers', async () => {
    const core = new CoreHarness(host, { pool: { standard: 3 } });
    await core.fillPool();
    const sandboxes = await Promise.all(
      Array.from({ length: 8 }, () => core.creator.create(placement(), NEVER)),
    );
    expect(new Set(sandboxes.map((sandbox) => sandbox.assignedVm())).size).toBe(8);
    expect(host.requests.length).toBe(8);
  });

  it('keeps the last VM for those who create less, unless a tenant is alone', async () => {
    const core = new CoreHarness(host, { pool: { standard: 2 } });
    const restoresOf = async (tenant_id: string) => {
      const before = host.requests.length;
      await core.creator.create(placement({ tenant_id }), NEVER);
      return host.requests.length - before;
    };
    await core.fillPool();
    expect([await restoresOf('usr_a'), await restoresOf('usr_a')]).toEqual([0, 0]);
    expect(await restoresOf('usr_b')).toBe(1);
    await core.fillPool();
    expect([await restoresOf('usr_a'), await restoresOf('usr_a')]).toEqual([0, 1]);
    expect(await restoresOf('usr_b')).toBe(0);
    await core.fillPool();
    expect([await restoresOf('usr_b'), await restoresOf('usr_b')]).toEqual([0, 0]);
  });

  it('is bypassed by a restore when its VM turns out to be unusable', async () => {
    const core = new CoreHarness(host, { pool: { standard: 1 } });
    await core.fillPool();
    const stale = host.live[0];
    if (stale !== undefined) stale.faults.personalize = new MicrovmError('timeout', 'stale');
    const sandbox = await core.creator.create(placement(), NEVER);
    expect(sandbox.assignedVm()).not.toBe(stale);
    expect(stale?.isGone).toBe(true);
    await sandbox.end('deleted');
    expect(core.capacity.free.vcpu).toBe(LIMITS.vcpu);
  });

  it('loses neither the create nor the capacity when an unusable VM cannot be destroyed', async () => {
    const core = new CoreHarness(host, { pool: { standard: 1 } });
    await core.fillPool();
    const stale = host.live[0];
    if (stale !== undefined) {
      stale.faults.personalize = new MicrovmError('timeout', 'stale');
      stale.faults.destroys = 3;
    }
    const sandbox = await core.creator.create(placement(), NEVER);
    await sandbox.end('deleted');
    expect(core.capacity.free.vcpu).toBe(LIMITS.vcpu);
  });

  it('discards VMs of an image that has been replaced', async () => {
    const core = new CoreHarness(host, { pool: { standard: 1 } });
    await core.fillPool();
    const old = host.live[0];
    host.currentImages = [{ ...STANDARD, id: 'standard-2', rootfs: 'standard-2.img' }];
    const sandbox = await core.creator.create(placement(), NEVER);
    expect(sandbox.record().rootfs).toBe('standard-2.img');
    await core.keepPoolWhile(async () => {
      await expect.poll(() => old?.isGone).toBe(true);
      await expect.poll(() => core.pool.size('standard')).toBe(1);
    });
  });

  it('evicts idle VMs when a sandbox needs their capacity', async () => {
    const core = new CoreHarness(host, { pool: { standard: 2 }, limits: { ...LIMITS, vcpu: 4 } });
    await core.fillPool();
    const sandbox = await core.creator.create(placement({ vcpu: 4 }), NEVER);
    expect(sandbox.state).toBe('running');
    expect(core.pool.size('standard')).toBe(0);
    expect(host.live.length).toBe(1);
  });
});
