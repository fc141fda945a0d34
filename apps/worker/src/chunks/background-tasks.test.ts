import { expect, it } from 'vitest';
import { BackgroundTasks } from './background-tasks.ts';

const { signal } = new AbortController();

it('starts a task when there is room for it', async () => {
  const ends = [1, 2, 3].map(() => Promise.withResolvers<void>());
  const events: string[] = [];
  await using tasks = new BackgroundTasks(2, signal);
  const start = (index: number) =>
    tasks.start(async () => {
      events.push(`${index} starts`);
      await ends[index]?.promise;
      events.push(`${index} ends`);
    });
  await start(0);
  expect(tasks.hasRoom).toBe(true);
  await start(1);
  expect(tasks.hasRoom).toBe(false);
  const third = start(2);
  ends[1]?.resolve();
  await third;
  expect(events).toEqual(['0 starts', '1 starts', '1 ends', '2 starts']);
  for (const { resolve } of ends) resolve();
  await tasks.finished();
  expect(events).toHaveLength(6);
  expect(tasks.hasRoom).toBe(true);
});

it.each([1, 2])(
  'tells of a failure at the next start, and at the end (%d at once)',
  async (most) => {
    await using tasks = new BackgroundTasks(most, signal);
    await tasks.start(() => Promise.reject(new Error('failed')));
    await expect(tasks.finished()).rejects.toThrow('failed');
    await expect(tasks.start(async () => undefined)).rejects.toThrow('failed');
  },
);

it('tells of a failure while other tasks run', async () => {
  const end = Promise.withResolvers<void>();
  await using tasks = new BackgroundTasks(2, signal);
  await tasks.start(() => end.promise);
  await tasks.start(() => Promise.reject(new Error('failed')));
  await expect(tasks.finished()).rejects.toThrow('failed');
  end.resolve();
});

it('ends its tasks when its owner leaves, and waits for them', async () => {
  let ended = 0;
  const leave = async () => {
    await using tasks = new BackgroundTasks(2, signal);
    for (let count = 0; count < 2; count += 1) {
      await tasks.start(async (limit) => {
        const aborted = Promise.withResolvers<void>();
        limit.addEventListener('abort', () => aborted.resolve());
        await aborted.promise;
        ended += 1;
        limit.throwIfAborted();
      });
    }
    throw new Error('the stream has failed');
  };
  await expect(leave()).rejects.toThrow('the stream has failed');
  expect(ended).toBe(2);
});
