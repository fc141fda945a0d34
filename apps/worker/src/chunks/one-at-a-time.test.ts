import { expect, it } from 'vitest';
import { OneAtATime } from './one-at-a-time.ts';

const { signal } = new AbortController();

it('starts a task when the one before has ended', async () => {
  const first = Promise.withResolvers<void>();
  const events: string[] = [];
  await using tasks = new OneAtATime(signal);
  expect(tasks.isIdle).toBe(true);
  await tasks.start(async () => {
    await first.promise;
    events.push('first');
  });
  expect(tasks.isIdle).toBe(false);
  const started = tasks.start(async () => void events.push('second'));
  first.resolve();
  await started;
  await tasks.finished();
  expect(events).toEqual(['first', 'second']);
  expect(tasks.isIdle).toBe(true);
});

it('tells of a failure at the next start, and at the end', async () => {
  await using tasks = new OneAtATime(signal);
  await tasks.start(() => Promise.reject(new Error('failed')));
  await expect(tasks.start(async () => undefined)).rejects.toThrow('failed');
  await expect(tasks.finished()).rejects.toThrow('failed');
});

it('ends its task when its owner leaves, and waits for it', async () => {
  let hasEnded = false;
  const leave = async () => {
    await using tasks = new OneAtATime(signal);
    await tasks.start(async (limit) => {
      const aborted = Promise.withResolvers<void>();
      limit.addEventListener('abort', () => aborted.resolve());
      await aborted.promise;
      hasEnded = true;
      limit.throwIfAborted();
    });
    throw new Error('the stream has failed');
  };
  await expect(leave()).rejects.toThrow('the stream has failed');
  expect(hasEnded).toBe(true);
});
