import { access, mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { INSTANCE_COUNT } from '../addresses.ts';
import { claimInstance, releaseInstance } from './claim-instance.ts';

let dir: string;
let root: string;

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'claim-'));
  root = join(dir, 'run');
});

afterEach(async () => {
  await rm(dir, { recursive: true });
});

async function dataDir(name: string): Promise<string> {
  const path = join(dir, name);
  await mkdir(path, { recursive: true });
  return path;
}

test('a data directory keeps its index, under any of its names, until it is released', async () => {
  const path = await dataDir('a');
  await symlink(path, join(dir, 'alias'));
  const first = await claimInstance(path, root);
  expect(first).toMatchObject({ index: 0, name: 'svc0', runDir: `${root}/0` });
  expect(await claimInstance(join(dir, 'alias'), root)).toEqual(first);
  expect((await claimInstance(await dataDir('b'), root)).index).toBe(1);
  await releaseInstance(first, root);
  await expect(access(first.runDir)).rejects.toThrow('ENOENT');
  expect((await claimInstance(await dataDir('c'), root)).index).toBe(0);
});

test('many that claim at once get different indexes', async () => {
  const paths = await Promise.all(Array.from({ length: 12 }, (_, n) => dataDir(`data${n}`)));
  const instances = await Promise.all(paths.map((path) => claimInstance(path, root)));
  expect(new Set(instances.map((instance) => instance.index)).size).toBe(12);
});

test('the index of a data directory that is gone goes to the next, with a clean run directory', async () => {
  const gone = await dataDir('gone');
  const { runDir } = await claimInstance(gone, root);
  await writeFile(join(runDir, 'old'), '');
  await rm(gone, { recursive: true });
  const next = await claimInstance(await dataDir('next'), root);
  expect(next.index).toBe(0);
  expect(await readdir(next.runDir)).toEqual([]);
});

test('releasing what meanwhile belongs to another changes nothing', async () => {
  const gone = await dataDir('gone');
  const old = await claimInstance(gone, root);
  await rm(gone, { recursive: true });
  const owner = await claimInstance(await dataDir('owner'), root);
  await releaseInstance(old, root);
  await access(owner.runDir);
  expect(await claimInstance(owner.dataDir, root)).toEqual(owner);
});

test('an entry that a crash left half-written is free', async () => {
  await mkdir(join(root, 'instances'), { recursive: true });
  await writeFile(join(root, 'instances', '0'), '');
  expect((await claimInstance(await dataDir('a'), root)).index).toBe(0);
});

test('a full machine is told as such', async () => {
  const paths = await Promise.all(
    Array.from({ length: INSTANCE_COUNT }, (_, n) => dataDir(`full${n}`)),
  );
  for (const path of paths) await claimInstance(path, root);
  await expect(claimInstance(await dataDir('more'), root)).rejects.toMatchObject({
    code: 'instances_exhausted',
  });
});
