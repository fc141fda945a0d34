import { link, mkdir, open, readdir, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { lockFile } from '@svc/service-kit/process';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
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

/** Stores a directory that shares files with others, and has one of its own: path in the image directory → source. */
async function storeLinked(
  path: string,
  hours: number,
  { own, ...links }: { readonly own: string } & Readonly<Record<string, string>>,
): Promise<void> {
  const at = join(imageDir, path);
  await mkdir(at, { recursive: true });
  await writeFile(join(at, own), Buffer.alloc(MIB, 1));
  for (const [name, source] of Object.entries(links)) {
    await link(join(imageDir, source), join(at, name));
  }
  await usedHoursAgo(path, hours);
}

describe('with layers that several images share', () => {
  const LOW = '.bases/low-000000000001';
  const HIGH = '.bases/high-000000000002';

  /** A base with one image, and another base above it with an image of its own. */
  beforeEach(async () => {
    await storeLinked(LOW, 90, { own: 'rootfs.ext4' });
    await storeLinked('low/a', 50, { own: 'initrd', 'low-a.ext4': `${LOW}/rootfs.ext4` });
    const below = { 'low-000000000001.ext4': `${LOW}/rootfs.ext4` };
    await storeLinked(HIGH, 80, { own: 'rootfs.qcow2', ...below });
    const above = { 'high-b.qcow2': `${HIGH}/rootfs.qcow2` };
    await storeLinked('high/b', 40, { own: 'initrd', ...below, ...above });
  });

  test('a budget removes images before the bases that others need', async () => {
    const { bytes } = await listStored(imageDir);
    expect(bytes).toBe(4 * MIB);
    expect(await prune(4)).toEqual([]);
    expect(await prune(3)).toEqual(['image a']);
    // The lower base is older than what is above it, and part of it.
    expect(await prune(2)).toEqual(['image b']);
    expect(await prune(1)).toEqual(['base 000000000002']);
    expect(await prune(0)).toEqual(['base 000000000001']);
  });

  test('everything goes, each base after the last image above it', async () => {
    expect(await prune(0)).toEqual([
      'image a',
      'image b',
      'base 000000000002',
      'base 000000000001',
    ]);
    expect(await listStored(imageDir)).toEqual({ items: [], bytes: 0 });
  });

  test('the bases of an image in use stay', async () => {
    await usedHoursAgo('high/b', 0);
    expect(await prune(0)).toEqual(['image a']);
    await usedHoursAgo('high/b', 40);
    expect(await prune(0)).toEqual(['image b', 'base 000000000002', 'base 000000000001']);
  });

  test('the bases of an image of the recipes stay', async () => {
    await storeLinked(currentBase, 90, { own: 'rootfs.qcow2', low: `${LOW}/rootfs.ext4` });
    await storeLinked(currentId, 90, { own: 'initrd', disk: `${currentBase}/rootfs.qcow2` });
    expect(await prune(0)).toEqual(['image a', 'image b', 'base 000000000002']);
    const { items } = await listStored(imageDir);
    expect(items.map(({ kind }) => kind).sort()).toEqual(['base', 'base', 'image']);
  });

  test('an image of which a VM runs stays, with its snapshot and its bases', async () => {
    await store('low/a/snapshots/key-1x512', 60);
    await usedHoursAgo('low/a', 50);
    await store('high/b/snapshots/key-1x512', 60);
    await usedHoursAgo('high/b', 40);
    const disk = await open(join(imageDir, 'high/b/high-b.qcow2'));
    const memory = await open(join(imageDir, 'high/b/snapshots/key-1x512/memory'));
    try {
      expect(await prune(0)).toEqual(['snapshot a-1x512', 'image a']);
    } finally {
      await memory.close();
      await disk.close();
    }
    expect((await prune(0)).at(-1)).toBe('base 000000000001');
    expect((await listStored(imageDir)).items).toEqual([]);
  });

  test('an image whose snapshot is being restored stays', async () => {
    const snapshot = await store('high/b/snapshots/key-1x512', 60);
    await usedHoursAgo('high/b', 40);
    expect(await markUsed(snapshot)).toBe(true);
    expect(await prune(0)).toEqual(['image a']);
  });
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
