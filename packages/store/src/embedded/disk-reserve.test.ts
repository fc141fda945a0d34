import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, stat, statfs, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { DiskReserve } from './disk-reserve.ts';

const run = promisify(execFile);
const MIB = 1024 * 1024;

let parent: string;
let disk: string;
let reserve: DiskReserve;

beforeEach(async () => {
  parent = await mkdtemp(join(tmpdir(), 'svc-disk-reserve-'));
  const image = join(parent, 'image');
  await writeFile(image, '');
  await truncate(image, 1536 * MIB);
  await run('mke2fs', ['-q', '-t', 'ext4', '-m', '0', image]);
  disk = join(parent, 'mounted');
  await mkdir(disk);
  await run('mount', ['-o', 'loop', image, disk]);
  reserve = new DiskReserve(join(disk, 'reserve'));
});

afterEach(async () => {
  await run('umount', [disk]);
  await rm(parent, { recursive: true });
});

async function availableMib(): Promise<number> {
  const { bavail, bsize } = await statfs(disk);
  return (bavail * bsize) / MIB;
}

test('takes the reserve, gives it back in parts while the disk is full, and takes it again', async () => {
  expect(await reserve.adjust()).toBe('taken');
  expect(await reserve.adjust()).toBeUndefined();
  const taken = await availableMib();
  expect(taken).toBeLessThanOrEqual(1280);
  const filler = join(disk, 'filler');
  await run('fallocate', ['--length', `${Math.floor(taken)}MiB`, filler]);
  expect(await availableMib()).toBeLessThan(64);
  for (const available of [32, 64]) {
    expect(await reserve.adjust()).toBe('released');
    expect(await availableMib()).toBeGreaterThanOrEqual(available);
  }
  expect(await reserve.adjust()).toBeUndefined();
  expect((await stat(join(disk, 'reserve'))).size).toBe(192 * MIB);
  await rm(filler);
  expect(await reserve.adjust()).toBe('taken');
  await reserve.release();
  expect(await availableMib()).toBeGreaterThan(1280);
});

test('has nothing to release twice', async () => {
  const available = Math.floor(await availableMib());
  await run('fallocate', ['--length', `${available - 1}MiB`, join(disk, 'filler')]);
  expect(await reserve.adjust()).toBeUndefined();
  await reserve.release();
});
