import { mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import {
  beginReplacement,
  endReplacement,
  requireNoReplacement,
  UnfinishedRestoreError,
  undoReplacement,
} from './unfinished-restore.ts';

let root: string;
let cluster: string;
let replaced: string;

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'svc-unfinished-'));
  [cluster, replaced] = [join(root, 'postgres'), join(root, 'postgres.replaced-1')];
});
afterEach(() => rm(root, { recursive: true, force: true }));

async function make(directory: string, content: string): Promise<void> {
  await mkdir(directory);
  await writeFile(join(directory, 'content'), content);
}
const content = () => readFile(join(cluster, 'content'), 'utf8');

test.each([
  ['before the old one is moved', async () => undefined],
  ['when the old one is moved', () => rename(cluster, replaced)],
  [
    'when the new one is there',
    async () => {
      await rename(cluster, replaced);
      await make(cluster, 'new');
    },
  ],
])('a replacement that is cut off %s can be undone', async (_when, advance) => {
  await make(cluster, 'old');
  await beginReplacement(cluster, replaced);
  await advance();
  await expect(requireNoReplacement(cluster)).rejects.toThrow(UnfinishedRestoreError);
  await undoReplacement(cluster);
  await requireNoReplacement(cluster);
  expect(await content()).toBe('old');
  expect(await readdir(root)).toEqual(['postgres']);
});

test('where nothing was before, nothing is left', async () => {
  await beginReplacement(cluster, undefined);
  await make(cluster, 'new');
  await undoReplacement(cluster);
  expect(await readdir(root)).toEqual([]);
});

test('a replacement that has ended stays', async () => {
  await make(cluster, 'old');
  await beginReplacement(cluster, replaced);
  await rename(cluster, replaced);
  await make(cluster, 'new');
  await endReplacement(cluster);
  await requireNoReplacement(cluster);
  await undoReplacement(cluster);
  expect(await content()).toBe('new');
});
