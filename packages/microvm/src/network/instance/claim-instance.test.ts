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
import { runProgram } from '@svc/service-kit/process';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { INSTANCE_COUNT, slotUid } from '../addresses.ts';
import {
  claimInstance,
  type InstanceRegistry,
  releaseInstance,
  releaseOrphans,
} from './claim-instance.ts';
import { ensureDataDirectoryId } from './data-directory-id.ts';
import { endProcesses, hasProcesses } from './instance-processes.ts';

let dir: string;
let root: string;
let registry: InstanceRegistry;
let ended: number[];
let busy: number[];

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'claim-'));
  root = join(dir, 'run');
  // A separate registry, because the users of the real indexes belong to real services.
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

/** Claims an index, and then replaces the data directory by an empty one. */
async function claimAndMakeAgain(): Promise<{ readonly path: string; readonly runDir: string }> {
  const path = await dataDir('again');
  const { runDir } = await claimInstance(path, registry);
  await writeFile(join(runDir, 'old'), '');
  await rm(path, { recursive: true });
  await dataDir('again');
  ended = [];
  return { path, runDir };
}

test('a data directory keeps its index under any of its paths until released', async () => {
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

test('concurrent claims get different indexes', async () => {
  const paths = await Promise.all(Array.from({ length: 12 }, (_, n) => dataDir(`data${n}`)));
  const instances = await Promise.all(paths.map((path) => claimInstance(path, registry)));
  expect(new Set(instances.map((instance) => instance.index)).size).toBe(12);
});

test('reuses the index of a deleted data directory, with an empty run directory', async () => {
  const gone = await dataDir('gone');
  const { runDir } = await claimInstance(gone, registry);
  await writeFile(join(runDir, 'old'), '');
  await rm(gone, { recursive: true });
  const next = await claimInstance(await dataDir('next'), registry);
  expect(next.index).toBe(0);
  expect(await readdir(next.runDir)).toEqual([]);
});

test('a data directory that was made again at the same path gets nothing of the deleted one', async () => {
  const { path, runDir } = await claimAndMakeAgain();
  const again = await claimInstance(path, registry);
  expect(again.runDir).toBe(runDir);
  expect(ended).toEqual([0]);
  expect(await readdir(runDir)).toEqual([]);
  expect(await claimInstance(path, registry)).toEqual(again);
  expect(ended).toEqual([0]);
});

test('releases the index of a deleted data directory once another one is at its path for certain', async () => {
  const { path } = await claimAndMakeAgain();
  // It may be the mount point of a file system that is not mounted at the moment.
  await releaseOrphans([], registry);
  expect(ended).toEqual([]);
  await ensureDataDirectoryId(path);
  await releaseOrphans([], registry);
  expect(ended).toEqual([0]);
  expect(await readdir(join(root, 'instances'))).toEqual(['.lock']);
});

test('keeps what a version of svc without ids of data directories has assigned', async () => {
  const [path, other] = [await dataDir('old'), await dataDir('other')];
  await claimInstance(path, registry);
  // That version frees an index without the file of the id, and assigns it to another data directory.
  await writeFile(join(root, 'instances', '0'), other);
  ended = [];
  await ensureDataDirectoryId(other);
  await releaseOrphans([], registry);
  expect((await claimInstance(other, registry)).index).toBe(0);
  expect(ended).toEqual([]);
  expect((await claimInstance(path, registry)).index).toBe(1);
});

test('clearing a run directory unmounts its mounts and deletes nothing in them', async () => {
  const gone = await dataDir('gone');
  const precious = await dataDir('precious');
  await writeFile(join(precious, 'file'), '');
  for (const clear of ['release', 'take over']) {
    const old = await claimInstance(gone, registry);
    const inside = join(old.runDir, 'jail');
    await mkdir(join(inside, 'deep'), { recursive: true });
    await runProgram('mount', ['-t', 'tmpfs', 'tmpfs', inside]);
    await mkdir(join(inside, 'precious'));
    await runProgram('mount', ['--bind', precious, join(inside, 'precious')]);
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

test('skips an unlisted index that has processes', async () => {
  busy = [0, 1];
  expect((await claimInstance(await dataDir('a'), registry)).index).toBe(2);
  expect(ended).toEqual([2]);
});

test('ends the VM processes of an instance', async () => {
  // One above the highest index, so no service of this machine uses it.
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

test('releasing an index that now belongs to another data directory does nothing', async () => {
  const gone = await dataDir('gone');
  const old = await claimInstance(gone, registry);
  await rm(gone, { recursive: true });
  const owner = await claimInstance(await dataDir('owner'), registry);
  await releaseInstance(old, registry);
  await access(owner.runDir);
  expect(await claimInstance(owner.dataDir, registry)).toEqual(owner);
});

test('releases orphaned indexes, and those after one that cannot be released', async () => {
  const [alive, stuck, gone] = ['alive', 'stuck', 'gone'] as const;
  const instances = [];
  for (const name of [alive, stuck, gone]) {
    instances.push(await claimInstance(await dataDir(name), registry));
  }
  ended = [];
  for (const name of [stuck, gone]) await rm(join(dir, name), { recursive: true });
  const removed: number[] = [];
  const release = (isStuck: boolean) =>
    releaseOrphans(
      [
        {
          name: 'remove the network',
          run: async ({ index }) => {
            if (isStuck && index === 1) throw new Error('it is busy');
          },
        },
        {
          name: 'count',
          run: async ({ index }) => {
            removed.push(index);
          },
        },
      ],
      registry,
    );
  await expect(release(true)).rejects.toThrow('cannot remove the network: it is busy');
  expect({ ended, removed }).toEqual({ ended: [1, 2], removed: [1, 2] });
  expect(await readdir(join(root, 'instances'))).toEqual(['.lock', '0', '1']);
  await expect(access(join(root, '2'))).rejects.toThrow('ENOENT');
  await access(join(root, '0'));
  await release(false);
  expect(await readdir(join(root, 'instances'))).toEqual(['.lock', '0']);
  expect(await claimInstance(instances[0]?.dataDir ?? '', registry)).toEqual(instances[0]);
});

test('an empty entry left by a crash is free', async () => {
  await mkdir(join(root, 'instances'), { recursive: true });
  await writeFile(join(root, 'instances', '0'), '');
  expect((await claimInstance(await dataDir('a'), registry)).index).toBe(0);
});

test('reports instances_exhausted when all indexes are in use', async () => {
  const paths = await Promise.all(
    Array.from({ length: INSTANCE_COUNT }, (_, n) => dataDir(`full${n}`)),
  );
  for (const path of paths) await claimInstance(path, registry);
  await expect(claimInstance(await dataDir('more'), registry)).rejects.toMatchObject({
    code: 'instances_exhausted',
  });
});
