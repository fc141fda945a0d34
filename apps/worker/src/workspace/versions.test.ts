import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { Versions } from './versions.ts';

const COUNT = 20_000;

/** A path in base64url, as long as a guest's can be. */
const pathOf = (index: number) => Buffer.from(`${index}/`.padEnd(2_000, 'x')).toString('base64url');

/** The memory of this process in use, in bytes. */
function memoryInUse(): number {
  setFlagsFromString('--expose-gc');
  runInNewContext('gc')();
  return process.memoryUsage().heapUsed;
}

test('keeps a version for each path', () => {
  const versions = new Versions();
  versions.set('a', 1);
  versions.set('b', 2);
  versions.set('a', 3);
  expect([versions.get('a'), versions.get('b'), versions.get('c')]).toEqual([3, 2, undefined]);
  versions.delete('a');
  expect([versions.has('a'), versions.has('b'), versions.size]).toEqual([false, true, 1]);
  versions.clear();
  expect(versions.size).toBe(0);
});

test('takes little memory however long the paths are', () => {
  const versions = new Versions();
  const before = memoryInUse();
  for (let index = 0; index < COUNT; index += 1) versions.set(pathOf(index), index);
  expect(memoryInUse() - before).toBeLessThan(200 * COUNT);
  expect(versions.size).toBe(COUNT);
});
