import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { walk } from './walk.ts';

const COUNT = 900;
const BATCH = 200;

let directory: string;
const names = Array.from({ length: COUNT }, (_, i) => `k${String(i).padStart(5, '0')}`);

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'svc-walk-'));
  for (const name of names) await writeFile(join(directory, `${name}.o`), '');
  await mkdir(join(directory, 'k00000-empty'));
});
afterAll(() => rm(directory, { recursive: true, force: true }));

test('finds every object of a large directory in order, from any key on', async () => {
  const from = async (after: string) => {
    const keys: string[] = [];
    for await (const { key } of walk(directory, '', after, AbortSignal.timeout(60_000), BATCH)) {
      keys.push(key);
    }
    return keys;
  };
  expect(await from('')).toEqual(names);
  expect(await from('k00890')).toEqual(names.slice(891));
});
