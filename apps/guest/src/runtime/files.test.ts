import { execFileSync } from 'node:child_process';
import { chown, cp, mkdir, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { RunningRuntime } from '../../test/running-runtime.ts';
import type { WorkerConnection } from '../../test/worker-connection.ts';

const NOBODY = 65534;
let runtime: RunningRuntime;
let worker: WorkerConnection;
let sent: number;

beforeEach(async () => {
  runtime = await RunningRuntime.start();
  sent = 0;
});
afterEach(() => runtime[Symbol.asyncDispose]());

/** Runs a task and returns the state reported for it. */
async function turn(): Promise<{ files: boolean }> {
  sent += 1;
  const before = worker.all('state').length;
  worker.send({ type: 'client', c: sent, frame: { type: 'task', prompt: `turn ${sent}` } });
  await worker.waitFor('state', (state) => worker.all('state').indexOf(state) === before);
  await worker.waitForFrame('task_completed', { result: `turn ${sent}` });
  const state = worker.all('state')[before];
  if (state === undefined) throw new Error('no state was reported');
  return state;
}

function archived(): string[] {
  const names = execFileSync('tar', ['-tf', runtime.options.savedArchive], { encoding: 'utf8' });
  return names.trim().split('\n').sort();
}

test('saves files only after a turn that changed some', async () => {
  worker = await runtime.configured();
  await expect.poll(async () => (await turn()).files).toBe(false);
  await writeFile(join(runtime.home, 'work/note'), 'one');
  expect((await turn()).files).toBe(true);
  expect(archived()).toEqual(['./', './work/', './work/note']);
  await expect.poll(async () => (await turn()).files).toBe(false);
  execFileSync('rm', [join(runtime.home, 'work/note')]);
  expect((await turn()).files).toBe(true);
  expect(archived()).toEqual(['./', './work/']);
});

test('leaves caches out', async () => {
  worker = await runtime.configured();
  for (const name of ['.cache', '.npm', '.codex']) {
    await mkdir(join(runtime.home, name));
    await writeFile(join(runtime.home, name, 'file'), name);
  }
  await turn();
  expect(archived()).toEqual(['./', './.codex/', './.codex/file', './work/']);
});

test('restores saved files in another runtime, with their permissions', async () => {
  worker = await runtime.configured();
  await writeFile(join(runtime.home, 'work/run'), '#!/bin/sh', { mode: 0o750 });
  await symlink('run', join(runtime.home, 'work/link'));
  await turn();
  await using other = await RunningRuntime.start();
  await cp(runtime.options.savedArchive, other.options.restoreArchive);
  worker = await other.configured({ restoreFiles: true });
  sent = 0;
  expect((await turn()).files).toBe(false);
  expect(await readFile(join(other.home, 'work/link'), 'utf8')).toBe('#!/bin/sh');
  expect((await stat(join(other.home, 'work/run'))).mode & 0o777).toBe(0o750);
  await expect(stat(other.options.restoreArchive)).rejects.toMatchObject({ code: 'ENOENT' });
});

test('reports an archive that cannot be unpacked, and continues the session', async () => {
  await writeFile(runtime.options.restoreArchive, 'not an archive');
  worker = await runtime.configured({ restoreFiles: true });
  expect(await worker.waitForFrame('error')).toMatchObject({ code: 'agent_failed' });
  await turn();
});

test('does not replace saved files with those of them that could be unpacked', async () => {
  const saved = join(runtime.directory, 'saved');
  await mkdir(join(saved, 'work'), { recursive: true });
  await writeFile(join(saved, 'work/first'), Buffer.alloc(20_000, 1));
  await writeFile(join(saved, 'work/second'), Buffer.alloc(2_000_000, 2));
  const { restoreArchive, savedArchive } = runtime.options;
  execFileSync('tar', ['-cf', restoreArchive, '-C', saved, './work/first', './work/second']);
  // As when the disk is full, or the time is over.
  execFileSync('truncate', ['-s', '1000000', restoreArchive]);
  worker = await runtime.configured({ restoreFiles: true });
  expect((await turn()).files).toBe(false);
  expect(await readdir(join(runtime.home, 'work'))).toContain('first');
  await expect(stat(savedArchive)).rejects.toMatchObject({ code: 'ENOENT' });
  await worker.waitForFrame('error', { code: 'state_not_saved' });
});

test('keeps an archive with paths outside the home directory inside it', async () => {
  const evil = join(runtime.directory, 'evil');
  await mkdir(join(evil, 'real'), { recursive: true });
  await writeFile(join(evil, 'real/file'), 'evil');
  await symlink(runtime.directory, join(evil, 'out'));
  const { restoreArchive } = runtime.options;
  execFileSync('tar', ['-cPf', restoreArchive, '-C', evil, 'out']);
  const pack = (rename: string) =>
    execFileSync('tar', ['-rPf', restoreArchive, '-C', evil, `--transform=${rename}`, 'real/file']);
  pack('s,real/file,out/by-link,');
  pack(`s,real/file,../by-dots,`);
  pack(`s,real/file,${runtime.directory}/by-root,`);
  worker = await runtime.configured({ restoreFiles: true });
  await turn();
  for (const name of ['by-link', 'by-dots', 'by-root']) {
    await expect(stat(join(runtime.directory, name))).rejects.toMatchObject({ code: 'ENOENT' });
  }
});

test('reports files beyond the limit and does not save them', async () => {
  await using small = await RunningRuntime.start({ filesBytes: 100_000 });
  worker = await small.configured();
  await writeFile(join(small.home, 'large'), Buffer.alloc(200_000, 1));
  expect((await turn()).files).toBe(false);
  expect(await worker.waitForFrame('error')).toMatchObject({ code: 'state_not_saved' });
  await expect(stat(small.options.savedArchive)).rejects.toMatchObject({ code: 'ENOENT' });
});

test('saves a large sparse file', async () => {
  await using small = await RunningRuntime.start({ filesBytes: 100_000 });
  worker = await small.configured();
  execFileSync('truncate', ['-s', '1G', join(small.home, 'hole')]);
  expect((await turn()).files).toBe(true);
});

test('leaves out files that the agent may not read', async () => {
  await chown(runtime.home, NOBODY, NOBODY);
  execFileSync('chmod', ['755', runtime.directory]);
  worker = await runtime.configured();
  await writeFile(join(runtime.home, 'secret-of-root'), 'x', { mode: 0o600 });
  await writeFile(join(runtime.home, 'open'), 'x', { mode: 0o644 });
  expect((await turn()).files).toBe(true);
  expect(archived()).toEqual(['./', './open', './work/']);
});
