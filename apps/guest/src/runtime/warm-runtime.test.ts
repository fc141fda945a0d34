import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { warmRuntime } from './warm-runtime.ts';

test('warming up runs a whole session and leaves nothing', async () => {
  const likeHome = await mkdtemp(join(tmpdir(), 'svc-warm-'));
  const before = (await readdir(tmpdir())).filter((name) => name.startsWith('warm-up-'));
  await warmRuntime(likeHome);
  await rm(likeHome, { recursive: true });
  const after = (await readdir(tmpdir())).filter((name) => name.startsWith('warm-up-'));
  expect(after).toEqual(before);
});
