import { expect, test, vi } from 'vitest';
import type { NetworkSlot } from './network-slot.ts';
import { SlotStock } from './slot-stock.ts';

const SIGNAL = new AbortController().signal;

const unexpected = (error: unknown) => {
  throw error;
};

function maker(build: (index: number) => Promise<void> = async () => undefined) {
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
      return { index, netns: `n${index}`, uid: index, tap: 'tap0', host: `${index}` };
    },
    async remove(slots: readonly NetworkSlot[]): Promise<void> {
      removed.push(...slots.map((slot) => slot.index));
    },
  };
}

test('fills up to its target and no further, and again after a take', async () => {
  const made = maker();
  const stock = new SlotStock(made, 3, unexpected);
  stock.fill();
  await expect.poll(() => stock.size).toBe(3);
  await stock.take(SIGNAL);
  await expect.poll(() => stock.size).toBe(3);
  expect(made.built).toBe(4);
  await stock.close();
  expect(made.removed).toHaveLength(3);
});

test('an empty stock builds for its taker, whose failure is the taker’s', async () => {
  const failing = maker(() => Promise.reject(new Error('no room')));
  const stock = new SlotStock(failing, 0, unexpected);
  await expect(stock.take(SIGNAL)).rejects.toThrow('no room');
  await stock.close();
});

test('background failures are reported and retried', async () => {
  const onFailure = vi.fn();
  const made = maker(async (index) => {
    if (index === 1) throw new Error('busy');
  });
  const stock = new SlotStock(made, 1, onFailure);
  stock.fill();
  await expect.poll(() => stock.size).toBe(1);
  expect(onFailure).toHaveBeenCalledOnce();
  await stock.close();
});

test('a slot built for a taker who went away stays in stock', async () => {
  const gate = Promise.withResolvers<void>();
  const stock = new SlotStock(
    maker(() => gate.promise),
    0,
    unexpected,
  );
  const leaving = new AbortController();
  const taken = stock.take(leaving.signal);
  leaving.abort(new Error('gone'));
  gate.resolve();
  await expect(taken).rejects.toThrow('gone');
  expect(stock.size).toBe(1);
  await stock.close();
});

test('closing ends a retry that waits, and what is being built is taken away', async () => {
  const gate = Promise.withResolvers<void>();
  const made = maker(() => gate.promise);
  const stock = new SlotStock(made, 1, unexpected);
  stock.fill();
  await expect.poll(() => made.built).toBe(1);
  const closing = stock.close();
  gate.resolve();
  await closing;
  expect(made.removed).toEqual([1]);

  const failing = new SlotStock(
    maker(() => Promise.reject(new Error('broken'))),
    1,
    () => undefined,
  );
  failing.fill();
  await failing.close();
});

test('closing takes away what is being built for takers, and tells them', async () => {
  const gate = Promise.withResolvers<void>();
  const made = maker(() => gate.promise);
  const stock = new SlotStock(made, 0, unexpected);
  const takes = Promise.allSettled([1, 2, 3, 4].map(() => stock.take(SIGNAL)));
  await expect.poll(() => made.built).toBe(2);
  const closing = stock.close();
  gate.resolve();
  await closing;
  const results = await takes;
  for (const result of results) {
    expect(result).toMatchObject({ status: 'rejected', reason: { code: 'network_closed' } });
  }
  expect(made.removed.toSorted()).toEqual([1, 2]);
});
