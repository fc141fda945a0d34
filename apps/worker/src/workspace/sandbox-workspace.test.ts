import { execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import {
  appendFile,
  chmod,
  mkdir,
  open,
  readFile,
  rename,
  rm,
  stat,
  symlink,
  truncate,
  utimes,
  writeFile,
} from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { LIMITS } from '@svc/contract';
import { MicrovmError, type MicrovmTree } from '@svc/microvm';
import { type GuestDaemon, startGuestDaemon } from '@svc/microvm/testing';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { MemoryWorkspace } from '../../test/memory-workspace.ts';
import { RateClock } from '../../test/rate-clock.ts';
import { contentOf } from '../../test/tree-content.ts';
import { saveRates } from '../chunks/save-rates.ts';
import { ControlPlaneError } from '../control-plane/control-plane-transport.ts';
import { SandboxWorkspace, type SandboxWorkspaceOptions } from './sandbox-workspace.ts';

const MIB = 1024 * 1024;
const OWNER = { vmId: 'vm_1', generation: 1 };

let directory: string;
let daemon: GuestDaemon;
let stored: MemoryWorkspace;
let faults: unknown[];
let count = 0;

const signal = () => AbortSignal.timeout(120_000);

/** A sandbox: a directory on this machine, served by the guest's daemon. */
interface Sandbox {
  readonly root: string;
  readonly tree: MicrovmTree;
  readonly workspace: SandboxWorkspace;
}

function sandbox(options: Partial<SandboxWorkspaceOptions> = {}, root = newRoot()): Sandbox {
  const tree = options.tree ?? daemon.tree(root);
  const workspace = new SandboxWorkspace({
    owner: OWNER,
    tenantId: 't',
    deps: stored.deps,
    isRunning: () => true,
    onFault: (error) => faults.push(error),
    ...options,
    tree,
  });
  return { root, tree, workspace };
}

function newRoot(): string {
  count += 1;
  return join(directory, `root-${count}`);
}

async function loaded(options: Partial<SandboxWorkspaceOptions> = {}): Promise<Sandbox> {
  const made = sandbox(options);
  await made.workspace.load(signal());
  return made;
}

const lastCommit = () =>
  (stored.commits.at(-1) ?? [])
    .map(({ kind, path }) => `${kind} ${Buffer.from(path, 'base64url')}`)
    .sort();

beforeAll(async () => {
  daemon = await startGuestDaemon();
  directory = daemon.directory;
});

afterAll(() => daemon.stop());

afterEach(() => daemon.closeTrees());

beforeEach(() => {
  stored = new MemoryWorkspace();
  faults = [];
});

it('brings a tree into another sandbox: kinds, modes, times, contents and names of any bytes', async () => {
  const one = await loaded();
  await mkdir(join(one.root, 'a/b'), { recursive: true });
  await writeFile(join(one.root, 'a/b/script'), '#!/bin/sh', { mode: 0o755 });
  await chmod(join(one.root, 'a/b/script'), 0o4755);
  await writeFile(join(one.root, 'empty'), '');
  await writeFile(join(one.root, 'large'), randomBytes(3 * MIB + 11));
  const name = Buffer.concat([Buffer.from(`${one.root}/`), Buffer.from([0xff, 0x20, 0x0a])]);
  await writeFile(name, 'odd');
  await symlink('../../etc/passwd', join(one.root, 'a/link'));
  for (let index = 0; index < 200; index += 1) {
    await writeFile(join(one.root, `a/small${index}`), randomBytes(index * 10));
  }
  await utimes(join(one.root, 'a/b/script'), 1_500_000_000, 1_500_000_000.25);
  await chmod(join(one.root, 'a'), 0o711);
  await utimes(join(one.root, 'a'), 1_400_000_000, 1_400_000_000);
  await one.workspace.flush(signal());
  expect(stored.commits).toHaveLength(1);
  // Small files share chunks.
  const chunks = new Set(
    stored.commits
      .flat()
      .flatMap((change) => (change.kind === 'file' ? change.extents.map(({ id }) => id) : [])),
  );
  expect(chunks.size).toBeLessThan(60);
  stored.pageSize = 70;
  const two = await loaded();
  const [expected, found] = [await contentOf(one.root), await contentOf(two.root)];
  expect(found).toEqual(expected);
  expect(Object.keys(found)).toHaveLength(207);
});

describe('a flush', () => {
  it('sends only what has changed, and nothing when nothing has', async () => {
    const { root, workspace } = await loaded();
    for (const name of ['kept', 'changed', 'removed', 'moved']) {
      await writeFile(join(root, name), randomBytes(50_000));
    }
    await mkdir(join(root, 'sub'));
    await workspace.flush(signal());
    const before = stored.chunks.bytes;
    await workspace.flush(signal());
    expect([stored.commits.length, stored.chunks.bytes]).toEqual([1, before]);
    await writeFile(join(root, 'changed'), 'new');
    await rm(join(root, 'removed'));
    await rename(join(root, 'moved'), join(root, 'sub/moved'));
    await workspace.flush(signal());
    expect(lastCommit()).toEqual([
      'deleted moved',
      'deleted removed',
      'directory sub',
      'file changed',
      'file sub/moved',
    ]);
    expect(stored.paths).toEqual(['changed', 'kept', 'sub', 'sub/moved']);
    // The moved file is stored already.
    expect(stored.chunks.bytes - before).toBeLessThan(60_000);
  });

  it('stores a change of a large file once', async () => {
    const { root, workspace } = await loaded();
    await writeFile(join(root, 'large'), randomBytes(4 * MIB));
    await workspace.flush(signal());
    const before = stored.chunks.storedBytes;
    const handle = await open(join(root, 'large'), 'r+');
    await handle.write(randomBytes(10), 0, 10, 2 * MIB);
    await handle.close();
    await workspace.flush(signal());
    expect(stored.chunks.storedBytes - before).toBeLessThan(2 * MIB);
    expect(await contentOf((await loaded()).root)).toEqual(await contentOf(root));
  });

  it('stores no holes', async () => {
    const { root, workspace } = await loaded();
    await writeFile(join(root, 'sparse'), 'start');
    await truncate(join(root, 'sparse'), 2048 * MIB);
    await workspace.flush(signal());
    expect(stored.chunks.storedBytes).toBeLessThan(100_000);
    const other = await loaded();
    const { size, blocks } = await stat(join(other.root, 'sparse'));
    expect(size).toBe(2048 * MIB);
    expect(blocks * 512).toBeLessThan(MIB);
  });

  it('goes on after a broken connection, without storing anything twice', async () => {
    const root = newRoot();
    const tree = daemon.tree(root);
    let received = 0;
    let breaks = 0;
    const breaking: MicrovmTree = {
      list: (request, limit) => tree.list(request, limit),
      write: (entries, limit) => tree.write(entries, limit),
      async *read(ranges, limit) {
        let here = 0;
        for await (const piece of tree.read(ranges, limit)) {
          yield piece;
          const size =
            'content' in piece && Buffer.isBuffer(piece.content) ? piece.content.length : 0;
          here += size;
          received += size;
          if (here < MIB) continue;
          breaks += 1;
          throw new MicrovmError('guest_unreachable', 'broken');
        }
      },
    };
    const { workspace } = sandbox({ tree: breaking }, root);
    await workspace.load(signal());
    await writeFile(join(root, 'large'), randomBytes(5 * MIB));
    await writeFile(join(root, 'small'), 'x');
    await workspace.flush(signal());
    expect(breaks).toBeGreaterThan(2);
    expect(received).toBe(5 * MIB + 1);
    expect(await contentOf((await loaded()).root)).toEqual(await contentOf(root));
  });

  it('loses nothing when it fails at any step', async () => {
    for (const step of ['stage', 'commit', 'lost']) {
      stored = new MemoryWorkspace();
      const { root, workspace } = await loaded();
      await writeFile(join(root, 'old'), 'old');
      await workspace.flush(signal());
      await writeFile(join(root, 'new'), 'new');
      await rm(join(root, 'old'));
      const { commit } = stored.deps.api;
      stored.onCall = (operation) => {
        if (operation === step) throw new ControlPlaneError(400, 'validation_failed');
      };
      if (step === 'lost') {
        // The commit is applied, but its answer is lost, and so are those of its repetitions.
        Object.assign(stored.deps.api, {
          commit: async (...request: Parameters<typeof commit>) => {
            await commit(...request);
            throw new ControlPlaneError(400, undefined);
          },
        });
      }
      await expect(workspace.flush(signal())).rejects.toThrow(ControlPlaneError);
      if (step !== 'lost') expect(stored.paths).toEqual(['old']);
      stored.onCall = () => undefined;
      Object.assign(stored.deps.api, { commit });
      await workspace.flush(signal());
      expect(stored.paths).toEqual(['new']);
    }
  });

  describe('of small files before a large one', () => {
    /** More than is uploaded early, and what is uploaded after it. */
    async function prepared(): Promise<Sandbox> {
      const made = await loaded();
      await mkdir(join(made.root, 'a'));
      for (let index = 0; index < 400; index += 1) {
        await writeFile(join(made.root, `a/${index}`), randomBytes(6000));
      }
      await writeFile(join(made.root, 'z'), randomBytes(6 * MIB));
      return made;
    }

    it('stages them while the large one is stored, and shows nothing before the commit', async () => {
      const { root, workspace } = await prepared();
      const staged = Promise.withResolvers<void>();
      stored.onCall = (operation) => {
        if (operation === 'stage') staged.resolve();
      };
      const { put } = stored.chunks.transfer;
      let uploads = 0;
      Object.assign(stored.chunks.transfer, {
        put: async (...request: Parameters<typeof put>) => {
          uploads += 1;
          // Only what was stored before can be staged meanwhile.
          if (stored.chunks.storedBytes > 3 * MIB) await staged.promise;
          expect(stored.paths).toEqual([]);
          await put(...request);
        },
      });
      await workspace.flush(signal());
      expect(uploads).toBeGreaterThan(8);
      expect(stored.commits.map((changes) => changes.length)).toEqual([402]);
      expect(await contentOf((await loaded()).root)).toEqual(await contentOf(root));
    });

    it.each(['upload', 'stage', 'commit'])('loses nothing when the %s fails', async (step) => {
      const { root, workspace } = await prepared();
      const { put } = stored.chunks.transfer;
      let stages = 0;
      const failure = new ControlPlaneError(400, 'validation_failed');
      stored.onCall = (operation) => {
        stages += Number(operation === 'stage');
        if (operation === step) throw failure;
      };
      Object.assign(stored.chunks.transfer, {
        put: async (...request: Parameters<typeof put>) => {
          if (step === 'upload' && stages > 0) throw failure;
          await put(...request);
        },
      });
      await expect(workspace.flush(signal())).rejects.toBe(failure);
      expect([stages > 0, stored.paths]).toEqual([true, []]);
      stored.onCall = () => undefined;
      Object.assign(stored.chunks.transfer, { put });
      await workspace.flush(signal());
      expect(await contentOf((await loaded()).root)).toEqual(await contentOf(root));
    });
  });

  it('leaves a file that changes while it is read for later, and reads an open one again', async () => {
    const root = newRoot();
    const tree = daemon.tree(root);
    let meanwhile: () => Promise<void> = async () => undefined;
    const { workspace } = sandbox(
      {
        tree: {
          list: (request, limit) => tree.list(request, limit),
          write: (entries, limit) => tree.write(entries, limit),
          async *read(ranges, limit) {
            await meanwhile();
            yield* tree.read(ranges, limit);
          },
        },
      },
      root,
    );
    await workspace.load(signal());
    await writeFile(join(root, 'busy'), 'a');
    await writeFile(join(root, 'quiet'), 'q');
    meanwhile = () => appendFile(join(root, 'busy'), 'a');
    await workspace.flush(signal());
    expect(stored.paths).toEqual(['quiet']);
    meanwhile = async () => undefined;
    await workspace.flush(signal());
    expect(stored.paths).toEqual(['busy', 'quiet']);
    const handle = await open(join(root, 'quiet'), 'a');
    await handle.write('!');
    await workspace.flush(signal());
    await workspace.flush(signal());
    await handle.close();
    await workspace.flush(signal());
    const commits = stored.commits.length;
    await workspace.flush(signal());
    expect([commits, stored.commits.length]).toEqual([5, 5]);
  });

  it('leaves out what has a longer path than can be stored, without the rest', async () => {
    const { root, workspace } = await loaded();
    const directory = Array.from({ length: 10 }, () => randomBytes(120).toString('hex')).join('/');
    await mkdir(join(root, directory), { recursive: true });
    const longest = `${directory}/`.padEnd(LIMITS.storedPathBytes, 'x');
    const tooLong = `${longest}x`;
    for (const path of [longest, tooLong]) await writeFile(join(root, path), 'x');
    await workspace.flush(signal());
    expect(stored.paths).toContain(longest);
    expect(stored.paths).not.toContain(tooLong);
    const key = Buffer.from(tooLong).toString('base64url');
    expect(workspace.refused).toEqual(new Map([[key, 'path_too_long']]));
  });

  it('remembers what was refused, and tries again at the end what may fit by then', async () => {
    const { root, workspace } = await loaded();
    await writeFile(join(root, 'large'), 'x');
    await writeFile(join(root, 'small'), 'x');
    stored.refuse = (path) => (path === 'large' ? 'quota_exceeded' : undefined);
    await workspace.flush(signal());
    const key = Buffer.from('large').toString('base64url');
    expect(workspace.refused).toEqual(new Map([[key, 'quota_exceeded']]));
    await workspace.flush(signal());
    expect(stored.commits).toHaveLength(1);
    stored.refuse = () => undefined;
    await workspace.finish(signal());
    expect(stored.paths).toEqual(['large', 'small']);
    expect(workspace.refused.size).toBe(0);
  });

  it('with more refusals than the answer names is repeated in small parts', async () => {
    const { root, workspace } = await loaded();
    await mkdir(root, { recursive: true });
    for (let index = 0; index < 1200; index += 1) await symlink('x', join(root, `link${index}`));
    stored.refuse = (path) => (path.startsWith('link1') ? undefined : 'too_many_entries');
    const apply = stored.deps.api.commit;
    Object.assign(stored.deps.api, {
      commit: async (...request: Parameters<typeof apply>) => {
        const result = await apply(...request);
        return { ...result, refused: result.refused.slice(0, 1000 - 900) };
      },
    });
    await workspace.flush(signal());
    expect(workspace.refused.size).toBe(0);
    Object.assign(stored.deps.api, { commit: apply });
    await workspace.flush(signal());
    expect(workspace.refused.size).toBe(1200 - 311);
  });

  it('changes nothing when the directory is gone', async () => {
    const { root, workspace } = await loaded();
    await writeFile(join(root, 'file'), 'x');
    await workspace.flush(signal());
    await rename(root, `${root}-moved`);
    await expect(workspace.flush(signal())).rejects.toMatchObject({ code: 'file_not_found' });
    expect(stored.paths).toEqual(['file']);
  });

  it('ends when its caller gives up', async () => {
    const { root, workspace } = await loaded();
    await writeFile(join(root, 'file'), 'x');
    const stop = new AbortController();
    stored.onCall = () => stop.abort(new Error('given up'));
    await expect(workspace.flush(stop.signal)).rejects.toThrow('given up');
  });
});

describe('two sandboxes', () => {
  it('keep what neither of them deleted, and the last flush of each file', async () => {
    const first = await loaded();
    for (const name of ['both', 'deleted', 'contested'])
      await writeFile(join(first.root, name), 'old');
    await first.workspace.flush(signal());
    const [one, two] = [await loaded(), await loaded()];
    await writeFile(join(one.root, 'of-one'), '1');
    await writeFile(join(two.root, 'of-two'), '2');
    await writeFile(join(one.root, 'both'), 'one');
    await writeFile(join(two.root, 'both'), 'two');
    await rm(join(one.root, 'deleted'));
    await rm(join(one.root, 'contested'));
    await writeFile(join(two.root, 'contested'), 'new');
    await two.workspace.flush(signal());
    await one.workspace.flush(signal());
    expect(stored.paths).toEqual(['both', 'contested', 'of-one', 'of-two']);
    const { root } = await loaded();
    expect(await readFile(join(root, 'both'), 'utf8')).toBe('one');
    expect(await readFile(join(root, 'contested'), 'utf8')).toBe('new');
  });
});

describe('a load', () => {
  it('writes files that customers uploaded, below directories that are not stored', async () => {
    const content = randomBytes(9 * MIB + 1);
    stored.upload('a/b/large', content);
    stored.upload('small', Buffer.from('x'));
    stored.upload('empty', Buffer.alloc(0));
    const { root, workspace } = await loaded();
    expect((await readFile(join(root, 'a/b/large'))).equals(content)).toBe(true);
    expect(await readFile(join(root, 'small'), 'utf8')).toBe('x');
    await workspace.flush(signal());
    expect(stored.commits).toEqual([]);
    await rm(join(root, 'small'));
    await workspace.flush(signal());
    expect(stored.paths).toEqual(['a/b/large', 'empty']);
  });

  it('reads a page again when an upload has replaced a file of it', async () => {
    stored.upload('file', Buffer.from('old'));
    let isFirst = true;
    stored.onCall = (operation) => {
      if (operation !== 'objects' || !isFirst) return;
      isFirst = false;
      stored.upload('file', Buffer.from('new content'));
    };
    const { root } = await loaded();
    expect(await readFile(join(root, 'file'), 'utf8')).toBe('new content');
  });

  it('goes on after a broken connection', async () => {
    const source = await loaded();
    await writeFile(join(source.root, 'large'), randomBytes(9 * MIB));
    await writeFile(join(source.root, 'small'), 'x');
    await source.workspace.flush(signal());
    const root = newRoot();
    const tree = daemon.tree(root);
    let writes = 0;
    const { workspace } = sandbox(
      {
        tree: {
          list: (request, limit) => tree.list(request, limit),
          read: (ranges, limit) => tree.read(ranges, limit),
          async write(entries, limit) {
            writes += 1;
            const result = await tree.write(entries, limit);
            // The entries are written, but the answer is lost.
            if (writes === 2 || writes === 4) throw new MicrovmError('guest_unreachable', 'broken');
            return result;
          },
        },
      },
      root,
    );
    await workspace.load(signal());
    expect(writes).toBeGreaterThan(5);
    expect(await contentOf(root)).toEqual(await contentOf(source.root));
  });

  it('never deletes what it could not write', async () => {
    stored.upload('a', Buffer.from('a file'));
    stored.upload('a/b', Buffer.from('below a file'));
    const { root, workspace } = await loaded();
    await writeFile(join(root, 'new'), 'x');
    await workspace.flush(signal());
    expect(stored.paths).toEqual(['a', 'a/b', 'new']);
  });
});

describe('after a restart of the worker', () => {
  it('what changed is flushed, and nothing is deleted or replaced by something older', async () => {
    const one = await loaded();
    for (const name of ['same', 'changed', 'missing', 'other']) {
      await writeFile(join(one.root, name), 'old');
    }
    await one.workspace.flush(signal());
    const other = await loaded();
    await writeFile(join(one.root, 'changed'), 'newer');
    await writeFile(join(one.root, 'new'), 'x');
    await rm(join(one.root, 'missing'));
    await writeFile(join(other.root, 'other'), 'of another sandbox');
    await utimes(join(other.root, 'other'), 4_000_000_000, 4_000_000_000);
    await other.workspace.flush(signal());
    const { workspace } = sandbox({}, one.root);
    await workspace.flush(signal());
    expect(lastCommit()).toEqual(['file changed', 'file new']);
    expect(stored.paths).toEqual(['changed', 'missing', 'new', 'other', 'same']);
  });

  it('of the daemon in the guest, deletions are found', async () => {
    const { root, workspace } = await loaded();
    for (const name of ['kept', 'removed']) await writeFile(join(root, name), 'x');
    await workspace.flush(signal());
    await rm(join(root, 'removed'));
    // Another listing without a generation makes the daemon forget this one.
    await daemon.tree(root).list({ limit: 10 }, signal());
    await workspace.flush(signal());
    expect(lastCommit()).toEqual(['deleted removed']);
  });
});

it('a guest that saves in a loop is slowed to a bound of bytes', async () => {
  const time = new RateClock();
  const rates = saveRates(32 * 1024, time);
  const deps = { ...stored.deps, chunks: { ...stored.deps.chunks, rates } };
  const { root, workspace } = await loaded({ deps });
  for (let turn = 0; turn < 30; turn += 1) {
    await writeFile(join(root, 'f'), randomBytes(MIB / 4));
    await workspace.flush(signal());
    expect(stored.chunks.storedBytes).toBeLessThan(time.allowed(32 * 1024) + MIB / 2);
  }
  expect(stored.chunks.storedBytes).toBeGreaterThan(7 * MIB);
  expect(time.waited).toBeGreaterThan(150_000);
});

describe('the regular flush', () => {
  it('is delayed when the guest has changed too much, but the last one is not', async () => {
    const rate = { perSecond: 1, burst: 1 };
    const { root, tree, workspace } = await loaded({ intervalMs: 1, rate });
    await writeFile(join(root, 'one'), 'x'.repeat(10_000));
    workspace.start();
    await expect.poll(() => stored.paths).toEqual(['one']);
    await workspace.flush(signal());
    await writeFile(join(root, 'two'), 'x'.repeat(10_000));
    await workspace.flush(signal());
    const { commits } = stored;
    await writeFile(join(root, 'three'), 'x');
    for (let turn = 0; turn < 20; turn += 1) await tree.write([], signal());
    expect(commits).toHaveLength(2);
    await workspace.finish(signal());
    expect(stored.paths).toEqual(['one', 'three', 'two']);
  });

  it('runs while the guest runs, goes on after a failure, and ends', async () => {
    let isRunning = true;
    const { root, workspace } = await loaded({ intervalMs: 10, isRunning: () => isRunning });
    await writeFile(join(root, 'one'), 'x');
    stored.onCall = () => {
      stored.onCall = () => undefined;
      throw new ControlPlaneError(400, undefined);
    };
    workspace.start();
    await expect.poll(() => stored.paths).toEqual(['one']);
    expect(faults).toHaveLength(1);
    isRunning = false;
    await workspace.flush(signal());
    await writeFile(join(root, 'two'), 'x');
    await workspace.finish(signal());
    expect(stored.paths).toEqual(['one', 'two']);
    await writeFile(join(root, 'three'), 'x');
    await workspace.stop();
    expect(stored.paths).toEqual(['one', 'two']);
  });
});

it('keeps a tree of 1,200 files', async () => {
  const one = await loaded();
  execFileSync(
    'sh',
    [
      '-c',
      'for d in $(seq 12); do mkdir d$d; for f in $(seq 100); do echo $d/$f >d$d/f$f; done; done',
    ],
    { cwd: one.root },
  );
  await one.workspace.flush(signal());
  expect(stored.entries.size).toBe(1212);
  const two = await loaded();
  expect(execFileSync('diff', ['-r', one.root, two.root]).toString()).toBe('');
  await rm(join(one.root, 'd7'), { recursive: true });
  await one.workspace.flush(signal());
  expect(stored.entries.size).toBe(1212 - 101);
});

describe('what changes without an event', () => {
  /** A process that has mapped a file and closed it, and writes when it is told to. */
  async function mapped(path: string) {
    const code = [
      'import mmap, os, sys',
      'fd = os.open(sys.argv[1], os.O_RDWR)',
      'map = mmap.mmap(fd, 4)',
      'os.close(fd)',
      'print("ready", flush=True)',
      'for line in sys.stdin: map[0] ^= 1; print("written", flush=True)',
    ].join('\n');
    const child = spawn('python3', ['-c', code, path], { stdio: ['pipe', 'pipe', 'inherit'] });
    // Not chunks: an unbuffered interpreter writes the end of a line on its own.
    const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
    expect(await lines.next()).toMatchObject({ value: 'ready' });
    return {
      async write() {
        child.stdin.write('\n');
        expect(await lines.next()).toMatchObject({ value: 'written' });
      },
      async [Symbol.asyncDispose]() {
        const ended = once(child, 'exit');
        child.stdin.end();
        await ended;
      },
    };
  }

  /** A workspace with one file that is flushed, and of which no event is left. */
  async function settled(options: Partial<SandboxWorkspaceOptions> = {}) {
    const made = await loaded(options);
    await writeFile(join(made.root, 'file'), '0123');
    await made.workspace.flush(signal());
    await made.workspace.flush(signal());
    return made;
  }

  it('costs the control plane nothing when nothing has changed', async () => {
    const { workspace } = await settled();
    const calls: string[] = [];
    stored.onCall = (operation) => void calls.push(operation);
    for (let turn = 0; turn < 3; turn += 1) await workspace.flush(signal());
    expect(calls).toEqual([]);
  });

  it('is saved at the end', async () => {
    const { root, workspace } = await settled();
    await using process = await mapped(join(root, 'file'));
    await workspace.flush(signal());
    const before = stored.commits.length;
    await process.write();
    await workspace.finish(signal());
    expect(stored.commits.length).toBeGreaterThan(before);
    expect(lastCommit()).toEqual(['file file']);
    expect(await contentOf((await loaded()).root)).toEqual(await contentOf(root));
  });

  it('is saved when the guest looks at each file again', async () => {
    const { root, workspace } = await settled({ lookMs: 0 });
    await using process = await mapped(join(root, 'file'));
    await workspace.flush(signal());
    const before = stored.commits.length;
    await process.write();
    await workspace.flush(signal());
    expect(stored.commits.length).toBeGreaterThan(before);
    expect(lastCommit()).toEqual(['file file']);
  });
});
