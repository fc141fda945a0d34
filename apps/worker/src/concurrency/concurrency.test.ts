import { describe, expect, it } from 'vitest';
import { settledWithin, untilAborted } from './abort.ts';
import { Mutex } from './mutex.ts';
import { SingleFlight } from './single-flight.ts';
import { sleep } from './sleep.ts';
import { Slots } from './slots.ts';
import { Wakeable } from './wakeable.ts';

const NEVER = new AbortController().signal;

describe('Mutex', () => {
  it('runs one at a time, in order, past failures', async () => {
    const mutex = new Mutex();
    const log: string[] = [];
    const task = (name: string, fail = false) =>
      mutex.run(async () => {
        log.push(`${name}+`);
        await Promise.resolve();
        log.push(`${name}-`);
        if (fail) throw new Error(name);
      });
    const failed = expect(task('a', true)).rejects.toThrow('a');
    await Promise.all([failed, task('b'), task('c'), mutex.idle()]);
    expect(log).toEqual(['a+', 'a-', 'b+', 'b-', 'c+', 'c-']);
  });
});

describe('SingleFlight', () => {
  it('shares one run, and starts anew after it, also after a failure', async () => {
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
});

describe('Slots', () => {
  it('bounds what runs, in order, and lets those who wait leave', async () => {
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
});

describe('waiting', () => {
  it('ends a wakeable wait by wake, also one that came before', async () => {
    const wakeable = new Wakeable();
    const waiting = wakeable.wait(60_000, NEVER);
    wakeable.wake();
    await waiting;
    wakeable.wake();
    await wakeable.wait(60_000, NEVER);
    await wakeable.wait(60_000, AbortSignal.abort());
  });

  it('gives up a wait without giving up its promise', async () => {
    const abort = new AbortController();
    const waiting = untilAborted(new Promise(() => undefined), abort.signal);
    abort.abort(new Error('enough'));
    await expect(waiting).rejects.toThrow('enough');
    await expect(untilAborted(Promise.resolve(1), NEVER)).resolves.toBe(1);
    expect(await settledWithin(new Promise(() => undefined), 1)).toBe(false);
    expect(await settledWithin(Promise.reject(new Error('x')), 1000)).toBe(true);
  });
});
