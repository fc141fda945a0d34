import { expect, it } from 'vitest';
import { Mutex } from './mutex.ts';

it('runs tasks one at a time and in order, also after one has failed', async () => {
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
