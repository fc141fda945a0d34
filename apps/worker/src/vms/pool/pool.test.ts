import { MicrovmError } from '@svc/microvm';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { LIMITS, placement } from '../../../test/harness.ts';
import { MemoryHost, STANDARD } from '../../../test/memory-host.ts';
import { Rooms } from '../../../test/rooms.ts';
import { until } from '../../../test/until.ts';

const NEVER = new AbortController().signal;
let host: MemoryHost;

beforeEach(() => {
  host = new MemoryHost();
});

/** Runs the keeper for as long as `check` takes. */
async function whileKept(rooms: Rooms, check: () => Promise<void>): Promise<void> {
  const stop = new AbortController();
  const run = rooms.keeper.run(stop.signal);
  try {
    await check();
  } finally {
    stop.abort();
    await run;
  }
}

describe('the pool', () => {
  it('is filled one at a time, labelled, and handed over without a restore', async () => {
    const rooms = new Rooms(host, { pool: { standard: 3 } });
    await rooms.fillPool();
    expect(host.mostRestoring).toBe(1);
    expect(host.live.map((vm) => vm.labels)).toEqual(Array(3).fill({ version: 1, role: 'pool' }));
    const oldest = host.live[0];
    const sandbox = await rooms.creator.create(placement(), NEVER);
    expect(host.requests.length).toBe(3);
    expect(sandbox.assignedVm()).toBe(oldest);
    expect(host.vmOf(sandbox.id).labels).toMatchObject({ role: 'sandbox', state: 'running' });
  });

  it('takes a VM in once its agent runtime has rehearsed, and one whose runtime does not answer too', async () => {
    const rehearsed: string[] = [];
    const rooms: Rooms = new Rooms(host, {
      pool: { standard: 2 },
      rehearse: async ({ id }) => {
        expect(rooms.pool.size('standard')).toBe(rehearsed.length);
        rehearsed.push(id);
        if (rehearsed.length === 2) throw new MicrovmError('guest_unreachable', 'nobody listens');
      },
    });
    await rooms.fillPool();
    expect(rehearsed).toEqual(host.live.map(({ id }) => id));
  });

  it('is refilled after a hand-over and after a death', async () => {
    const rooms = new Rooms(host, { pool: { standard: 2 } });
    await whileKept(rooms, async () => {
      await until(() => expect(rooms.pool.size('standard')).toBe(2));
      await rooms.creator.create(placement(), NEVER);
      host.live.find((vm) => vm.labels.role === 'pool')?.die();
      await until(() => expect(rooms.pool.size('standard')).toBe(2));
      expect(host.live.length).toBe(3);
    });
  });

  it('hands over each VM once, also to many at the same time', async () => {
    const rooms = new Rooms(host, { pool: { standard: 3 } });
    await rooms.fillPool();
    const sandboxes = await Promise.all(
      Array.from({ length: 8 }, () => rooms.creator.create(placement(), NEVER)),
    );
    expect(new Set(sandboxes.map((sandbox) => sandbox.assignedVm())).size).toBe(8);
    expect(host.requests.length).toBe(8);
  });

  it('falls back to a restore when the idle VM turns out to be unusable', async () => {
    const rooms = new Rooms(host, { pool: { standard: 1 } });
    await rooms.fillPool();
    const stale = host.live[0];
    if (stale !== undefined) stale.faults.personalize = new MicrovmError('timeout', 'stale');
    const sandbox = await rooms.creator.create(placement(), NEVER);
    expect(sandbox.assignedVm()).not.toBe(stale);
    expect(stale?.isGone).toBe(true);
    await sandbox.end('deleted');
    expect(rooms.capacity.free.vcpu).toBe(LIMITS.vcpu);
  });

  it('lets go of VMs of an image that has been replaced', async () => {
    const rooms = new Rooms(host, { pool: { standard: 1 } });
    await rooms.fillPool();
    const old = host.live[0];
    host.currentImages = [{ ...STANDARD, id: 'standard-2', rootfs: 'standard-2.img' }];
    const sandbox = await rooms.creator.create(placement(), NEVER);
    expect(sandbox.record().rootfs).toBe('standard-2.img');
    await whileKept(rooms, async () => {
      await until(() => expect(old?.isGone).toBe(true));
      await until(() => expect(rooms.pool.size('standard')).toBe(1));
    });
  });

  it('makes room for a sandbox that needs it', async () => {
    const rooms = new Rooms(host, { pool: { standard: 2 }, limits: { ...LIMITS, vcpu: 3 } });
    await rooms.fillPool();
    const sandbox = await rooms.creator.create(placement({ vcpu: 3 }), NEVER);
    expect(sandbox.state).toBe('running');
    expect(rooms.pool.size('standard')).toBe(0);
    expect(host.live.length).toBe(1);
  });
});

describe('the keeper', () => {
  it('keeps out of the way while a caller waits', async () => {
    const rooms = new Rooms(host, { pool: { standard: 1 } });
    const gate = Promise.withResolvers<void>();
    host.gate = gate.promise;
    const create = rooms.creator.create(placement(), NEVER);
    await until(() => expect(host.restoring).toBe(1));
    await whileKept(rooms, async () => {
      const other = rooms.foreground.run(async () => {
        gate.resolve();
        await create;
        expect(host.requests.length).toBe(1);
      });
      await other;
      await until(() => expect(rooms.pool.size('standard')).toBe(1));
    });
  });

  it('tries again, more slowly, after failures', async () => {
    const rooms = new Rooms(host, { pool: { standard: 1 } });
    let failures = 3;
    host.failure = () => {
      failures -= 1;
      return failures >= 0 ? new MicrovmError('boot_failed', 'no') : undefined;
    };
    await rooms.fillPool();
    expect(host.requests.length).toBe(4);
    expect(host.live.length).toBe(1);
  });

  it('gives idle VMs back while memory is short, and none are made then', async () => {
    const rooms = new Rooms(host, { pool: { standard: 2 } });
    await rooms.fillPool();
    host.memoryMib = 100;
    await whileKept(rooms, async () => {
      await until(() => expect(host.live.length).toBe(0));
      expect(host.requests.length).toBe(2);
      host.memoryMib = 10_000;
      await until(() => expect(rooms.pool.size('standard')).toBe(2));
    });
  });

  it('ends in the middle of a restore and leaves nothing of it', async () => {
    const rooms = new Rooms(host, { pool: { standard: 1 } });
    host.gate = new Promise(() => undefined);
    await whileKept(rooms, () => until(() => expect(host.restoring).toBe(1)));
    expect(host.live).toEqual([]);
    expect(rooms.capacity.free.vcpu).toBe(LIMITS.vcpu);
  });

  it('does not fill a template whose image is not ready', async () => {
    host.currentImages = [{ ...STANDARD, ready: false }];
    const rooms = new Rooms(host, { pool: { standard: 1 } });
    const images = vi.spyOn(host, 'images');
    await whileKept(rooms, () => until(() => expect(images.mock.calls.length).toBeGreaterThan(2)));
    expect(host.requests).toEqual([]);
  });
});
