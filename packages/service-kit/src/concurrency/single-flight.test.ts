import { expect, it } from 'vitest';
import { SingleFlight } from './single-flight.ts';

it('shares one call between concurrent callers, and starts a new one after a failure', async () => {
  const flight = new SingleFlight<number>();
  let runs = 0;
  const work = async () => {
    runs += 1;
    if (runs === 1) throw new Error('first');
    return runs;
  };
  const first = [flight.run(work), flight.run(work)];
  expect((await Promise.allSettled(first)).map(({ status }) => status)).toEqual([
    'rejected',
    'rejected',
  ]);
  expect(await flight.run(work)).toBe(2);
  expect(flight.active).toBe(false);
});

it('does not share calls between instances', async () => {
  const [a, b] = [new SingleFlight<number>(), new SingleFlight<number>()];
  let calls = 0;
  const call = async () => {
    calls += 1;
    return calls;
  };
  expect(await Promise.all([a.run(call), a.run(call)])).toEqual([1, 1]);
  expect(await Promise.all([a.run(call), b.run(call)])).toEqual([2, 3]);
});

it('forgets a failed call', async () => {
  const flight = new SingleFlight<number>();
  await expect(flight.run(() => Promise.reject(new Error('no')))).rejects.toThrow('no');
  expect(await flight.run(async () => 1)).toBe(1);
});
