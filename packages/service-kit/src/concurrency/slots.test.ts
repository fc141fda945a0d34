import { describe, expect, it } from 'vitest';
import type { HeldSlot } from './held-slot.ts';
import { sleep } from './sleep.ts';
import { Slots } from './slots.ts';

const NEVER = new AbortController().signal;

it('limits the running tasks, keeps their order and lets a queued task be cancelled', async () => {
  const slots = new Slots(2);
  const gates = [0, 1, 2, 3].map(() => Promise.withResolvers<void>());
  const started: number[] = [];
  const leave = new AbortController();
  const runs = gates.map((gate, index) =>
    slots.run(
      async () => {
        started.push(index);
        await gate.promise;
      },
      index === 2 ? leave.signal : NEVER,
    ),
  );
  await sleep(0, NEVER);
  expect(started).toEqual([0, 1]);
  leave.abort(new Error('left'));
  await expect(runs[2]).rejects.toThrow('left');
  gates[0]?.resolve();
  await runs[0];
  await sleep(0, NEVER);
  expect(started).toEqual([0, 1, 3]);
  for (const gate of gates) gate.resolve();
  await Promise.all([runs[1], runs[3]]);
  await slots.run(async () => undefined, NEVER);
});

it('lets keys take turns, however many tasks one of them has queued', async () => {
  const slots = new Slots(2);
  const ended: string[] = [];
  const greedy = Array.from({ length: 6 }, (_, index) =>
    slots.run(async () => void ended.push(`greedy ${index}`), NEVER, 'greedy'),
  );
  const modest = slots.run(async () => void ended.push('modest'), NEVER, 'modest');
  await Promise.all([...greedy, modest]);
  expect(ended.indexOf('modest')).toBeLessThanOrEqual(2);
});

it('leaves slots to others when one key has as many as it may, and gives each back once', async () => {
  const slots = new Slots(3, 2);
  const [first] = [await slots.take(NEVER, 'greedy'), await slots.take(NEVER, 'greedy')];
  const taken: string[] = [];
  const more = slots.take(NEVER, 'greedy').then(() => taken.push('greedy'));
  const modest = await slots.take(NEVER, 'modest');
  expect(taken).toEqual([]);
  modest();
  modest();
  await sleep(0, NEVER);
  expect(taken).toEqual([]);
  first?.();
  await more;
  const last = await slots.take(NEVER, 'other');
  const waiting = slots.take(NEVER, 'other').then(() => taken.push('other'));
  await sleep(0, NEVER);
  expect(taken).toEqual(['greedy']);
  last();
  await waiting;
});

it('serves keys with equally many running tasks one after the other', async () => {
  const slots = new Slots(1);
  const release = await slots.take(NEVER, 'c');
  const order: string[] = [];
  const runs = ['a', 'a', 'a', 'b', 'b'].map((key) =>
    slots.run(async () => void order.push(key), NEVER, key),
  );
  release();
  await Promise.all(runs);
  expect(order).toEqual(['a', 'b', 'a', 'b', 'a']);
});

describe('a task that waits for its source', () => {
  const sourceOf = (gate: Promise<unknown>) =>
    (async function* () {
      await gate;
      yield 'item';
    })();
  /** Reads a source to its end. */
  const reading = (gate: Promise<unknown>, items: string[]) => async (slot: HeldSlot) => {
    for await (const item of slot.read(sourceOf(gate))) items.push(item);
  };

  it('lends its slot to another key, and goes on when it has it back', async () => {
    const slots = new Slots(1);
    const [gate, otherGate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const items: string[] = [];
    const run = slots.run(reading(gate.promise, items), NEVER, 'slow');
    const begun = Promise.withResolvers<void>();
    const other = slots.run(
      () => {
        begun.resolve();
        return otherGate.promise;
      },
      NEVER,
      'other',
    );
    await begun.promise;
    gate.resolve();
    await sleep(0, NEVER);
    expect(items).toEqual([]);
    otherGate.resolve();
    await Promise.all([run, other]);
    expect(items).toEqual(['item']);
  });

  it('counts as one of its key while its slot is lent', async () => {
    const slots = new Slots(2, 1);
    const gate = Promise.withResolvers<void>();
    const begun: string[] = [];
    const slow = slots.run(reading(gate.promise, []), NEVER, 'slow');
    const next = slots.run(async () => void begun.push('slow'), NEVER, 'slow');
    const holder = await slots.take(NEVER, 'holder');
    await slots.run(async () => void begun.push('other'), NEVER, 'other');
    expect(begun).toEqual(['other']);
    gate.resolve();
    await Promise.all([slow, next]);
    holder();
    expect(begun).toEqual(['other', 'slow']);
  });

  it('may be cancelled while its slot is lent, and when it wants it back', async () => {
    const slots = new Slots(1);
    const leave = new AbortController();
    const gate = Promise.withResolvers<void>();
    const slow = slots.run(reading(gate.promise, []), leave.signal, 'slow');
    const release = await slots.take(NEVER, 'other');
    gate.resolve();
    await sleep(0, NEVER);
    leave.abort(new Error('left'));
    await expect(slow).rejects.toThrow('left');
    release();
    release();
    const [first, second] = [await slots.take(NEVER, 'slow'), slots.take(NEVER, 'slow')];
    let isTaken = false;
    void second.then(() => {
      isTaken = true;
    });
    await sleep(0, NEVER);
    expect(isTaken).toBe(false);
    first();
    (await second)();
  });

  it('fails with its source, and the next of its key begins', async () => {
    const slots = new Slots(2, 1);
    const gate = Promise.withResolvers<void>();
    const slow = slots.run(reading(gate.promise, []), NEVER, 'slow');
    const next = slots.run(async () => 'begun', NEVER, 'slow');
    const holder = await slots.take(NEVER, 'holder');
    const other = await slots.take(NEVER, 'other');
    holder();
    gate.reject(new Error('broken'));
    await expect(slow).rejects.toThrow('broken');
    expect(await next).toBe('begun');
    other();
  });
});

describe('a task of many steps', () => {
  it('shares its slot once it has had it for long, and goes on when it has it back', async () => {
    const slots = new Slots(1);
    const order: string[] = [];
    let isOver = false;
    const long = slots.run(
      async (slot) => {
        while (!isOver) {
          await sleep(1, NEVER);
          await slot.share();
        }
        order.push('long');
      },
      NEVER,
      'long',
    );
    const own = slots.run(async () => void order.push('own'), NEVER, 'long');
    const run = async () => {
      order.push('other');
      isOver = true;
    };
    await Promise.all([long, own, slots.run(run, NEVER, 'other')]);
    expect(order).toEqual(['other', 'long', 'own']);
  });
});
