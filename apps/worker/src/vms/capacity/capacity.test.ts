import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Capacity, type Reservation } from './capacity.ts';

const LIMITS = {
  vcpu: 8,
  memoryMib: 4096,
  diskMib: 8192,
  minFreeMemoryMib: 512,
  minFreeDiskMib: 1024,
  memoryPerPendingMib: 100,
};
const SIZE = { vcpu: 1, memoryMib: 512, diskMib: 1024 };

function machine(memory = 10_000, disk = 10_000) {
  const free = { memory, disk };
  const capacity = new Capacity(LIMITS, {
    memoryAvailableMib: () => free.memory,
    diskAvailableMib: async () => free.disk,
  });
  return { free, capacity };
}

describe('Capacity', () => {
  it('never reserves more than the limits, and gets everything back', async () => {
    const size = fc.record({
      vcpu: fc.integer({ min: 1, max: 4 }),
      memoryMib: fc.integer({ min: 256, max: 2048 }),
      diskMib: fc.integer({ min: 512, max: 4096 }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(size, fc.boolean()), { maxLength: 30 }), async (steps) => {
        const { capacity } = machine();
        const held: Reservation[] = [];
        for (const [wanted, give] of steps) {
          if (give) held.pop()?.release();
          const got = await capacity.reserve(wanted).catch(() => undefined);
          got?.settle();
          if (got !== undefined) held.push(got);
          const sum = held.reduce((total, { size: one }) => total + one.memoryMib, 0);
          expect(sum).toBeLessThanOrEqual(LIMITS.memoryMib);
          expect(capacity.free.memoryMib).toBe(LIMITS.memoryMib - sum);
        }
        for (const reservation of [...held, ...held]) reservation.release();
        expect(capacity.free).toEqual({ vcpu: 8, memoryMib: 4096, diskMib: 8192 });
      }),
    );
  });

  it('gives the last capacity to one of two concurrent requests', async () => {
    const { capacity } = machine();
    const half = { ...SIZE, memoryMib: 3000 };
    const answers = await Promise.allSettled([capacity.reserve(half), capacity.reserve(half)]);
    expect(answers.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
  });

  it('refuses when the machine lacks memory, counting VMs that are being made', async () => {
    const { free, capacity } = machine(750);
    const first = await capacity.reserve(SIZE);
    const second = await capacity.reserve(SIZE);
    await expect(capacity.reserve(SIZE)).rejects.toMatchObject({ code: 'no_capacity' });
    first.settle();
    second.settle();
    await capacity.reserve(SIZE);
    free.memory = 511;
    await expect(capacity.reserve(SIZE)).rejects.toMatchObject({ code: 'no_capacity' });
    expect(capacity.free.vcpu).toBe(5);
  });

  it('refuses when the disk is full, and reserves nothing', async () => {
    const { free, capacity } = machine();
    free.disk = 1023;
    await expect(capacity.reserve(SIZE)).rejects.toMatchObject({ code: 'no_capacity' });
    expect(capacity.free.diskMib).toBe(8192);
  });

  it('counts adopted VMs beyond the limits', async () => {
    const { capacity } = machine();
    const adopted = capacity.adopt({ vcpu: 20, memoryMib: 9000, diskMib: 1 });
    expect(capacity.free).toMatchObject({ vcpu: 0, memoryMib: 0 });
    await expect(capacity.reserve(SIZE)).rejects.toMatchObject({ code: 'no_capacity' });
    adopted.release();
    await capacity.reserve(SIZE);
  });
});
