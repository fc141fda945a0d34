import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { temporaryDirectory } from '../../../test/temporary-directory.ts';
import { readVerdict, writeVerdict } from './kvm-verdict.ts';

const HOUR_MS = 60 * 60_000;

let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
let path: string;

beforeEach(async () => {
  directory = await temporaryDirectory();
  path = join(directory.path, 'machine', 'kvm.json');
});
afterEach(async () => {
  vi.useRealTimers();
  await directory.remove();
});

test.each([
  ['booted', true],
  ['ended', false],
] as const)('a guest that %s decides for good, on the same machine', async (outcome, works) => {
  expect(await readVerdict(path, 'a')).toBeUndefined();
  await writeVerdict(path, 'a', outcome);
  vi.setSystemTime(Date.now() + 1000 * HOUR_MS);
  expect(await readVerdict(path, 'a')).toBe(works);
  expect(await readVerdict(path, 'b')).toBeUndefined();
});

test('a guest that took too long decides for an hour', async () => {
  await writeVerdict(path, 'a', 'timed_out');
  expect(await readVerdict(path, 'a')).toBe(false);
  vi.setSystemTime(Date.now() + HOUR_MS + 1000);
  expect(await readVerdict(path, 'a')).toBeUndefined();
});

test('a broken file decides nothing', async () => {
  await writeVerdict(path, 'a', 'booted');
  await writeFile(path, '{"machine":');
  expect(await readVerdict(path, 'a')).toBeUndefined();
});
