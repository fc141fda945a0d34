import { expect, it } from 'vitest';
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
