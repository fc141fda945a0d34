import { MicrovmError } from '@svc/microvm';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { CoreHarness } from '../../../test/core-harness.ts';
import { LIMITS, MemoryHost, STANDARD } from '../../../test/memory-host.ts';
import { placement } from '../../../test/placement.ts';

const NEVER = new AbortController().signal;
let host: MemoryHost;

beforeEach(() => {
  host = new MemoryHost();
});

/** Waits until the pool has one VM, although a caller waits all the time. */
async function becomesFullWhileSomebodyWaits(core: CoreHarness): Promise<void> {
  const gate = Promise.withResolvers<void>();
  const endless = core.foreground.run(() => gate.promise);
  await core.keepPoolWhile(() => expect.poll(() => core.pool.size('standard')).toBe(1));
  gate.resolve();
  await endless;
}

describe('the pool keeper', () => {
  it('restores nothing while a caller waits', async () => {
    const core = new CoreHarness(host, { pool: { standard: 1 } });
    const gate = Promise.withResolvers<void>();
    host.gate = gate.promise;
    const create = core.creator.create(placement(), NEVER);
    await expect.poll(() => host.restoring).toBe(1);
    await core.keepPoolWhile(async () => {
      const other = core.foreground.run(async () => {
        gate.resolve();
        await create;
        expect(host.requests.length).toBe(1);
      });
      await other;
      await expect.poll(() => core.pool.size('standard')).toBe(1);
    });
  });

  it('restores at last when callers never cease to wait', async () => {
    const core = new CoreHarness(host, {
      pool: { standard: 1 },
      yieldMs: { alone: 50, shared: 50 },
    });
    await becomesFullWhileSomebodyWaits(core);
  });

  it('yields for a shorter time while there are several tenants', async () => {
    const endlessMs = 3_600_000;
    const yieldMs = { alone: endlessMs, shared: 50 };
    const core = new CoreHarness(host, { pool: { standard: 1 }, yieldMs });
    const create = (tenant_id: string) => core.creator.create(placement({ tenant_id }), NEVER);
    await create('usr_a');
    expect(core.pool.isShared).toBe(false);
    await create('usr_b');
    expect(core.pool.isShared).toBe(true);
    await becomesFullWhileSomebodyWaits(core);
  });

  it('retries after failures, with a backoff', async () => {
    const core = new CoreHarness(host, { pool: { standard: 1 } });
    let failures = 3;
    host.failure = () => {
      failures -= 1;
      return failures >= 0 ? new MicrovmError('boot_failed', 'no') : undefined;
    };
    await core.fillPool();
    expect(host.requests.length).toBe(4);
    expect(host.live.length).toBe(1);
  });

  it('destroys idle VMs and creates none while memory is short', async () => {
    const core = new CoreHarness(host, { pool: { standard: 2 } });
    await core.fillPool();
    host.memoryMib = 100;
    await core.keepPoolWhile(async () => {
      await expect.poll(() => host.live.length).toBe(0);
      expect(host.requests.length).toBe(2);
      host.memoryMib = 10_000;
      await expect.poll(() => core.pool.size('standard')).toBe(2);
    });
  });

  it('stops during a restore and leaves nothing behind', async () => {
    const core = new CoreHarness(host, { pool: { standard: 1 } });
    host.gate = new Promise(() => undefined);
    await core.keepPoolWhile(() => expect.poll(() => host.restoring).toBe(1));
    expect(host.live).toEqual([]);
    expect(core.capacity.free.vcpu).toBe(LIMITS.vcpu);
  });

  it('ignores a template whose image is not ready', async () => {
    host.currentImages = [{ ...STANDARD, ready: false }];
    const core = new CoreHarness(host, { pool: { standard: 1 } });
    const images = vi.spyOn(host, 'images');
    await core.keepPoolWhile(() => expect.poll(() => images.mock.calls.length).toBeGreaterThan(2));
    expect(host.requests).toEqual([]);
  });
});
