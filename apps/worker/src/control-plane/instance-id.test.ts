import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { instanceIdOf } from './instance-id.ts';

async function dataDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'svc-instance-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  return directory;
}

test('stays the same for one machine and data directory, and differs for any other', async () => {
  const [mine, other] = [await dataDirectory(), await dataDirectory()];
  const id = await instanceIdOf(mine, 'boot');
  expect(await instanceIdOf(mine, 'boot')).toBe(id);
  expect(await instanceIdOf(mine, 'another boot')).not.toBe(id);
  expect(await instanceIdOf(other, 'boot')).not.toBe(id);
});
