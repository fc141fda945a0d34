import { expect, test } from 'vitest';
import { batchLoad } from './batch-load.ts';

test('combines the look-ups that arrive during a statement into the next statement', async () => {
  const batches: (readonly number[])[] = [];
  const releases: (() => void)[] = [];
  const load = batchLoad<number, string>(async (keys) => {
    batches.push(keys);
    await new Promise<void>((resolve) => releases.push(resolve));
    return keys.map((key) => `v${key}`);
  });
  const first = load(1);
  await expect.poll(() => batches.length).toBe(1);
  const others = [load(2), load(3), load(2)];
  await Promise.resolve();
  expect(batches).toEqual([[1]]);
  releases[0]?.();
  expect(await first).toBe('v1');
  await expect.poll(() => batches.length).toBe(2);
  releases[1]?.();
  expect(await Promise.all(others)).toEqual(['v2', 'v3', 'v2']);
  expect(batches[1]).toEqual([2, 3]);
});

test('a failed statement fails its look-ups and no later one', async () => {
  let failing = true;
  const load = batchLoad<number, number>(async (keys) => {
    if (failing) throw new Error('down');
    return [...keys];
  });
  await expect(Promise.all([load(1), load(2)])).rejects.toThrow('down');
  failing = false;
  expect(await load(3)).toBe(3);
});
