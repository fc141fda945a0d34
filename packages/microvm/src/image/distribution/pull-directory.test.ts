import { mkdir, readdir, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { lockFile } from '@svc/service-kit/process';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { temporaryDirectory } from '../../../test/temporary-directory.ts';
import { imageDirectory } from '../image-store.ts';
import { pullDirectory, removeAbandonedPulls } from './pull-directory.ts';

const HOUR_MS = 3_600_000;

let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
beforeEach(async () => {
  directory = await temporaryDirectory();
});
afterEach(() => directory.remove());

async function interruptedPull(id: string, hoursAgo: number): Promise<void> {
  const path = pullDirectory(directory.path, 'standard', id);
  await mkdir(path, { recursive: true });
  await writeFile(join(path, 'vmlinuz'), 'a part');
  const time = new Date(Date.now() - hoursAgo * HOUR_MS);
  await utimes(path, time, time);
}

test('removes what nobody goes on with, and nothing that somebody may', async () => {
  await removeAbandonedPulls(directory.path);
  await interruptedPull('recent', 23);
  await interruptedPull('old', 25);
  await interruptedPull('running', 25);
  await interruptedPull('complete', 1);
  await mkdir(imageDirectory(directory.path, 'standard', 'complete'), { recursive: true });
  await mkdir(join(directory.path, '.locks'), { recursive: true });
  const lock = await lockFile(join(directory.path, '.locks', 'standard-running'));
  const left = () => readdir(join(directory.path, '.pulls'));
  await removeAbandonedPulls(directory.path);
  expect((await left()).sort()).toEqual(['standard-recent', 'standard-running']);
  await lock.release();
  await removeAbandonedPulls(directory.path);
  expect(await left()).toEqual(['standard-recent']);
});
