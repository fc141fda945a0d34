import { expect, test, vi } from 'vitest';
import type { NetworkSlot } from './network-slot.ts';
import { SlotPool } from './slot-pool.ts';

const SIGNAL = new AbortController().signal;

const unexpected = (error: unknown) => {
  throw error;
};

function fakeBuilder(build: (index: number) => Promise<void> = async () => undefined) {
  let built = 0;
  const removed: number[] = [];
  return {
    removed,
    get built() {
      return built;
    },
    async build(): Promise<NetworkSlot> {
      built += 1;
      const index = built;
      await build(index);
      return { index, netns: `n${index}`, uid: index, tap: 'tap0', address: `${index}` };
    },
    async remove(slots: readonly NetworkSlot[]): Promise<void> {
      removed.push(...slots.map((slot) => slot.index));
    },
  };
}

test('fills up to its target and no further, and again after a take', async () => {
  const builder = fakeBuilder();
  const pool = new SlotPool(builder, 3, unexpected);
  pool.fill();
  await expect.poll(() => pool.size).toBe(3);
  await pool.take(SIGNAL);
  await expect.poll(() => pool.size).toBe(3);
  expect(builder.built).toBe(4);
  await pool.close();
  expect(builder.removed).toHaveLength(3);
});

test('take() on an empty pool builds a slot and rejects when that fails', async () => {
  const failing = fakeBuilder(() => Promise.reject(new Error('no space')));
  const pool = new SlotPool(failing, 0, unexpected);
  await expect(pool.take(SIGNAL)).rejects.toThrow('no space');
  await pool.close();
});

test('reports and retries background failures', async () => {
  const onFailure = vi.fn();
  const builder = fakeBuilder(async (index) => {
    if (index === 1) throw new Error('busy');
  });
  const pool = new SlotPool(builder, 1, onFailure);
  pool.fill();
  await expect.poll(() => pool.size).toBe(1);
  expect(onFailure).toHaveBeenCalledOnce();
  await pool.close();
});

test('keeps a slot whose take was aborted', async () => {
  const gate = Promise.withResolvers<void>();
  const pool = new SlotPool(
    fakeBuilder(() => gate.promise),
    0,
    unexpected,
  );
  const leaving = new AbortController();
  const taken = pool.take(leaving.signal);
  leaving.abort(new Error('gone'));
  gate.resolve();
  await expect(taken).rejects.toThrow('gone');
  expect(pool.size).toBe(1);
  await pool.close();
});

test('close() stops a pending retry and removes slots being built', async () => {
  const gate = Promise.withResolvers<void>();
  const builder = fakeBuilder(() => gate.promise);
  const pool = new SlotPool(builder, 1, unexpected);
  pool.fill();
  await expect.poll(() => builder.built).toBe(1);
  const closing = pool.close();
  gate.resolve();
  await closing;
  expect(builder.removed).toEqual([1]);

  const failing = new SlotPool(
    fakeBuilder(() => Promise.reject(new Error('broken'))),
    1,
    () => undefined,
  );
  failing.fill();
  await failing.close();
});

test('close() removes slots being built for takers and rejects their takes', async () => {
  const gate = Promise.withResolvers<void>();
  const builder = fakeBuilder(() => gate.promise);
  const pool = new SlotPool(builder, 0, unexpected);
  const takes = Promise.allSettled([1, 2, 3, 4].map(() => pool.take(SIGNAL)));
  await expect.poll(() => builder.built).toBe(2);
  const closing = pool.close();
  gate.resolve();
  await closing;
  const results = await takes;
  for (const result of results) {
    expect(result).toMatchObject({ status: 'rejected', reason: { code: 'network_closed' } });
  }
  expect(builder.removed.toSorted()).toEqual([1, 2]);
});
