import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test, vi } from 'vitest';
import { warmRuntime } from './warm-runtime.ts';

afterEach(() => vi.unstubAllEnvs());

test('runs a whole session and leaves no files behind', async () => {
  const likeHome = await mkdtemp(join(tmpdir(), 'svc-warm-'));
  // A directory of its own: tests of other files may warm up at the same time.
  vi.stubEnv('TMPDIR', likeHome);
  await warmRuntime(likeHome);
  expect(await readdir(likeHome)).toEqual([]);
  await rm(likeHome, { recursive: true });
});
