import { link, mkdir, readdir, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { lockFile } from '@svc/service-kit/process';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { smallRecipe } from '../../../test/small-recipe.ts';
import { temporaryDirectory } from '../../../test/temporary-directory.ts';
import { readRecipe } from '../recipe.ts';
import { markUsed } from './last-used.ts';
import { pruneImages } from './prune.ts';
import { listStored } from './stored-item.ts';

const MIB = 1024 * 1024;
const HOUR_MS = 60 * 60_000;

let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
let imageDir: string;
let recipes: string;
let currentId: string;
let currentBase: string;

beforeEach(async () => {
  directory = await temporaryDirectory();
  imageDir = join(directory.path, 'images');
  recipes = await smallRecipe(directory.path);
  const recipe = await readRecipe('small', recipes);
  currentId = join('small', recipe.id);
  currentBase = join('.bases', `small-${recipe.baseId}`);
  await mkdir(join(imageDir, '.locks'), { recursive: true });
});
afterEach(() => directory.remove());

/** Stores a directory with one file of a MiB that was last used some hours ago. */
async function store(path: string, hours: number): Promise<string> {
  const at = join(imageDir, path);
  await mkdir(at, { recursive: true });
  await writeFile(join(at, 'memory'), Buffer.alloc(MIB, 1));
  await usedHoursAgo(path, hours);
  return at;
}

async function usedHoursAgo(path: string, hours: number): Promise<void> {
  const time = new Date(Date.now() - hours * HOUR_MS);
  await utimes(join(imageDir, path), time, time);
}

async function prune(budgetMib: number): Promise<string[]> {
  const removed = await pruneImages({ imageDir, budgetBytes: budgetMib * MIB, recipes });
  for (const item of removed) await expect(readdir(item.directory)).rejects.toThrow('ENOENT');
  expect(await readdir(join(imageDir, '.builds')).catch(() => [])).toEqual([]);
  return removed.map(({ kind, name }) => `${kind} ${name}`);
}

test('removes the least recently used until the rest fits', async () => {
  await store(join(currentId, 'snapshots/key-1x256'), 7);
  await store(join(currentId, 'snapshots/key-1x512'), 3);
  await store(join(currentId, 'snapshots/key-2x512'), 5);
  await store(join(currentId, 'snapshots/key-4x512'), 1);
  await store(currentId, 9);
  await store('small/outdated', 4);
  const id = currentId.slice('small/'.length);
  expect(await prune(6)).toEqual([]);
  expect(await prune(4)).toEqual([`snapshot ${id}-2x512`, 'image outdated']);
  expect(await prune(0)).toEqual([`snapshot ${id}-1x512`, `snapshot ${id}-4x512`]);
  const { items } = await listStored(imageDir);
  expect(items.map(({ name }) => name)).toEqual([id, `${id}-1x256`]);
});

test('keeps what the recipes need, and what is in use', async () => {
  await store(currentId, 100);
  await store(currentBase, 100);
  await store('.bases/small-0123456789ab', 100);
  await store('small/served', 100);
  await store('small/served/snapshots/key-1x256', 100);
  await usedHoursAgo('small/served', 0);
  expect(await markUsed(join(imageDir, 'small/served/snapshots/key-1x256'))).toBe(true);
  expect(await prune(0)).toEqual(['base 0123456789ab']);
});

test('leaves alone what is being built, and goes on with the next', async () => {
  await store('small/outdated', 9);
  await store('small/older', 8);
  const lock = await lockFile(join(imageDir, '.locks/small-outdated'));
  try {
    expect(await prune(0)).toEqual(['image older']);
  } finally {
    await lock.release();
  }
  expect(await prune(0)).toEqual(['image outdated']);
});

test('counts what a base and its images share once', async () => {
  const base = await store(currentBase, 1);
  const image = join(imageDir, currentId);
  await mkdir(image, { recursive: true });
  await link(join(base, 'memory'), join(image, 'memory'));
  const { items, bytes } = await listStored(imageDir);
  expect(items.map((item) => item.bytes)).toEqual([MIB, MIB]);
  expect(bytes).toBe(MIB);
});
