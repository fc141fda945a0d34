import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  access,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { INSTANCE_COUNT, slotUid } from '../addresses.ts';
import { run } from '../command.ts';
import { claimInstance, releaseInstance } from './claim-instance.ts';
import { endProcesses, hasProcesses } from './instance-processes.ts';
import type { InstanceRegistry } from './registry.ts';

let dir: string;
let root: string;
let registry: InstanceRegistry;
let ended: number[];
let busy: number[];

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'claim-'));
  root = join(dir, 'run');
  // A registry of the test's own: the users of the real indexes belong to real services.
  [ended, busy] = [[], []];
  registry = {
    root,
    hasProcesses: async (index) => busy.includes(index),
    endProcesses: async (index) => {
      ended.push(index);
    },
  };
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
  const first = await claimInstance(path, registry);
  expect(first).toMatchObject({ index: 0, name: 'svc0', runDir: `${root}/0` });
  expect(await claimInstance(join(dir, 'alias'), registry)).toEqual(first);
  expect((await claimInstance(await dataDir('b'), registry)).index).toBe(1);
  await releaseInstance(first, registry);
  await expect(access(first.runDir)).rejects.toThrow('ENOENT');
  expect((await claimInstance(await dataDir('c'), registry)).index).toBe(0);
});

test('many that claim at once get different indexes', async () => {
  const paths = await Promise.all(Array.from({ length: 12 }, (_, n) => dataDir(`data${n}`)));
  const instances = await Promise.all(paths.map((path) => claimInstance(path, registry)));
  expect(new Set(instances.map((instance) => instance.index)).size).toBe(12);
});

test('the index of a data directory that is gone goes to the next, with a clean run directory', async () => {
  const gone = await dataDir('gone');
  const { runDir } = await claimInstance(gone, registry);
  await writeFile(join(runDir, 'old'), '');
  await rm(gone, { recursive: true });
  const next = await claimInstance(await dataDir('next'), registry);
  expect(next.index).toBe(0);
  expect(await readdir(next.runDir)).toEqual([]);
});

test('what is mounted in a run directory is let go of, and nothing is deleted through it', async () => {
  const gone = await dataDir('gone');
  const precious = await dataDir('precious');
  await writeFile(join(precious, 'file'), '');
  for (const clear of ['release', 'take over']) {
    const old = await claimInstance(gone, registry);
    const inside = join(old.runDir, 'jail');
    await mkdir(join(inside, 'deep'), { recursive: true });
    await run('mount', ['-t', 'tmpfs', 'lab', inside]);
    await mkdir(join(inside, 'precious'));
    await run('mount', ['--bind', precious, join(inside, 'precious')]);
    if (clear === 'release') await releaseInstance(old, registry);
    else {
      await rm(gone, { recursive: true });
      const next = await claimInstance(await dataDir('next'), registry);
      expect(await readdir(next.runDir)).toEqual([]);
    }
    expect(await readdir(precious)).toEqual(['file']);
    expect(await readFile('/proc/self/mountinfo', 'utf8')).not.toContain(inside);
  }
});

test('an index that is not listed but in use is left alone', async () => {
  busy = [0, 1];
  expect((await claimInstance(await dataDir('a'), registry)).index).toBe(2);
  expect(ended).toEqual([2]);
});

test('a VM process without a data directory is ended before its user gets another', async () => {
  // The highest index, which no service of this machine has.
  const uid = `${slotUid(INSTANCE_COUNT, 7)}`;
  const orphan = spawn('setpriv', [`--reuid=${uid}`, '--clear-groups', 'sleep', '600']);
  const exited = once(orphan, 'exit');
  await once(orphan, 'spawn');
  await expect.poll(() => readFile(`/proc/${orphan.pid}/status`, 'utf8')).toContain(uid);
  expect(await hasProcesses(INSTANCE_COUNT)).toBe(true);
  await endProcesses(INSTANCE_COUNT);
  expect(await hasProcesses(INSTANCE_COUNT)).toBe(false);
  expect(await exited).toEqual([null, 'SIGKILL']);
});

test('releasing what meanwhile belongs to another changes nothing', async () => {
  const gone = await dataDir('gone');
  const old = await claimInstance(gone, registry);
  await rm(gone, { recursive: true });
  const owner = await claimInstance(await dataDir('owner'), registry);
  await releaseInstance(old, registry);
  await access(owner.runDir);
  expect(await claimInstance(owner.dataDir, registry)).toEqual(owner);
});

test('an entry that a crash left half-written is free', async () => {
  await mkdir(join(root, 'instances'), { recursive: true });
  await writeFile(join(root, 'instances', '0'), '');
  expect((await claimInstance(await dataDir('a'), registry)).index).toBe(0);
});

test('a full machine is told as such', async () => {
  const paths = await Promise.all(
    Array.from({ length: INSTANCE_COUNT }, (_, n) => dataDir(`full${n}`)),
  );
  for (const path of paths) await claimInstance(path, registry);
  await expect(claimInstance(await dataDir('more'), registry)).rejects.toMatchObject({
    code: 'instances_exhausted',
  });
});
