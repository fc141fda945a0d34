import { mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { listLocal, placeFor, removeLocal } from './local-files.ts';

const { signal } = new AbortController();
let outer: string;
let root: string;

beforeEach(async () => {
  outer = await mkdtemp(join(tmpdir(), 'svc-cli-local-'));
  root = join(outer, 'root');
});
afterEach(() => rm(outer, { recursive: true, force: true }));

test('lists files below, but neither links nor what killed downloads left', async () => {
  await mkdir(join(root, 'a/b'), { recursive: true });
  await writeFile(join(outer, 'secret'), 's');
  await writeFile(join(root, 'a/b/c'), 'xyz');
  await writeFile(join(root, '.svc-0123456789ab.part'), 'half');
  await symlink(outer, join(root, 'up'));
  await symlink(join(outer, 'secret'), join(root, 'a/secret'));
  const { files, skipped } = await listLocal(root, signal);
  expect([...files]).toEqual([['a/b/c', { size: 3, modifiedMs: expect.any(Number) }]]);
  expect(skipped.toSorted()).toEqual(['a/secret', 'up']);
});

test('a directory that does not exist has no files', async () => {
  expect((await listLocal(root, signal)).files.size).toBe(0);
});

test.each(['../x', '/x', 'a/../../x', '.', '', 'a//b', 'a/\0'])(
  'writes nothing to %j',
  async (path) => {
    await expect(placeFor(root, path)).rejects.toMatchObject({ code: 'unsafe_path' });
  },
);

test('writes neither through links nor over them', async () => {
  await mkdir(root);
  await symlink(outer, join(root, 'up'));
  await mkdir(join(root, 'directory'));
  for (const path of ['up', 'up/x', 'up/new/x', 'directory']) {
    await expect(placeFor(root, path), path).rejects.toMatchObject({ code: 'unsafe_path' });
  }
  expect(await readdir(outer)).toEqual(['root']);
  expect(await placeFor(root, 'a/b/c')).toBe(join(root, 'a/b/c'));
});

test('removes a file with the directories that it leaves empty', async () => {
  await mkdir(join(root, 'a/b'), { recursive: true });
  await writeFile(join(root, 'a/b/c'), '');
  await writeFile(join(root, 'a/d'), '');
  await removeLocal(root, 'a/b/c');
  expect(await readdir(root, { recursive: true })).toEqual(['a', 'a/d']);
  await removeLocal(root, 'a/d');
  expect(await readdir(root)).toEqual([]);
});
