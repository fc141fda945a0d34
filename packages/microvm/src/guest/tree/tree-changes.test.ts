import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFile,
  chmod,
  chown,
  link,
  lutimes,
  mkdir,
  open,
  readFile,
  rename,
  rm,
  symlink,
  truncate,
  unlink,
  utimes,
  writeFile,
} from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type GuestDaemon, startGuestDaemon } from '../../../test/guest-daemon.ts';
import type { GuestTree } from './guest-tree.ts';
import { TreeWatch } from './tree-watch.ts';

const LIMIT = 100_000;

let directory: string;
let daemon: GuestDaemon;
let root: string;
let outside: string;
let tree: GuestTree;
let count = 0;

const signal = () => AbortSignal.timeout(120_000);
const inTree = (...names: string[]) => join(root, ...names);
const python = (code: string, ...args: string[]) => execFileSync('python3', ['-c', code, ...args]);

/** What has changed since a listing, as `+path` and `-path`, and the next generation. */
async function since(generation: string, full = false) {
  const listing = await tree.list({ since: generation, limit: LIMIT, full }, signal());
  expect(listing.complete).toBe(false);
  const changes = [
    ...listing.changed.map(({ path }) => `+${path}`),
    ...listing.deleted.map((path) => `-${path}`),
  ];
  return { generation: listing.generation, changes: changes.sort() };
}

/** Lists until nothing changes any more, so that only later events tell of changes. */
async function settle(): Promise<string> {
  let { generation } = await tree.list({ limit: LIMIT, silent: true }, signal());
  await expect
    .poll(
      async () => {
        const next = await since(generation);
        const isSettled = next.generation === generation;
        generation = next.generation;
        return isSettled;
      },
      { timeout: 60_000 },
    )
    .toBe(true);
  return generation;
}

/** Opens a file in another process, which writes when it is told to, until its input ends. */
async function writer(path: string, prepare: string, write: string) {
  const code = `
import mmap, os, sys
path = sys.argv[1]
${prepare}
print('ready', flush=True)
sys.stdin.readline()
${write}
print('written', flush=True)
sys.stdin.readline()
`;
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

beforeAll(async () => {
  daemon = await startGuestDaemon();
  directory = daemon.directory;
});

afterAll(() => daemon.stop());

afterEach(() => daemon.closeTrees());

beforeEach(async () => {
  count += 1;
  root = join(directory, `root-${count}`);
  outside = join(directory, `outside-${count}`);
  await mkdir(inTree('sub/inner'), { recursive: true });
  await mkdir(outside);
  for (const name of ['file', 'other', 'sub/file', 'sub/inner/file']) {
    await writeFile(inTree(name), name);
  }
  await writeFile(join(outside, 'file'), 'outside');
  await symlink('file', inTree('link'));
  tree = daemon.tree(root);
});

describe('a tree in which nothing has changed', () => {
  it('is not looked at again, whatever is read or happens elsewhere', async () => {
    const generation = await settle();
    await readFile(inTree('sub/inner/file'));
    await writeFile(join(outside, 'new'), 'x');
    await rename(join(outside, 'new'), join(outside, 'moved'));
    // A pass over the tree would have another generation.
    expect(await since(generation)).toEqual({ generation, changes: [] });
    expect((await since(generation, true)).generation).not.toBe(generation);
  });

  it('is told by the watch until anything happens in its file system', async () => {
    const watch = new TreeWatch({ address: daemon.address, token: daemon.token, root });
    const isUnchanged = (generation: string) => watch.isUnchanged(generation, signal());
    // Other programs of this machine write to the same file system.
    const settleUnseen = async () => {
      let generation = '';
      const isQuiet = async () => {
        generation = await settle();
        return isUnchanged(generation);
      };
      await expect.poll(isQuiet, { timeout: 60_000, interval: 20 }).toBe(true);
      return generation;
    };
    try {
      const first = await settleUnseen();
      expect(await isUnchanged('0'.repeat(32))).toBe(false);
      await appendFile(inTree('file'), 'more');
      expect(await isUnchanged(first)).toBe(false);
      await settleUnseen();
      expect(await isUnchanged(first)).toBe(false);
      const second = await settle();
      await rename(root, join(outside, 'root'));
      await mkdir(root);
      expect(await isUnchanged(second)).toBe(false);
      await settleUnseen();
    } finally {
      watch.close();
    }
  });

  it('is looked at when the generation, or the limit, is another one', async () => {
    const generation = await settle();
    const other = await tree.list({ since: '0'.repeat(32), limit: LIMIT }, signal());
    expect(other).toMatchObject({ complete: true });
    expect(other.changed).toHaveLength(7);
    const next = await tree.list({ since: other.generation, limit: LIMIT - 1 }, signal());
    expect(next.generation).not.toBe(other.generation);
    expect(next.generation).not.toBe(generation);
  });
});

const CHANGES: Readonly<Record<string, readonly [() => Promise<unknown>, ...string[]]>> = {
  'a new file': [() => writeFile(inTree('new'), 'x'), '+new'],
  'a write': [() => writeFile(inTree('sub/inner/file'), 'x'), '+sub/inner/file'],
  'an append': [() => appendFile(inTree('file'), 'x'), '+file'],
  'a truncation': [() => truncate(inTree('file'), 1), '+file'],
  'an allocation': [
    async () =>
      python('import os,sys; os.posix_fallocate(os.open(sys.argv[1], 2), 0, 9999)', inTree('file')),
    '+file',
  ],
  'a mode': [() => chmod(inTree('sub/inner'), 0o700), '+sub/inner'],
  'an owner': [() => chown(inTree('file'), 12, 34), '+file'],
  'a time': [() => utimes(inTree('sub/file'), 1, 2), '+sub/file'],
  'the time of a link': [() => lutimes(inTree('link'), 1, 2), '+link'],
  'a deletion': [() => unlink(inTree('sub/inner/file')), '+sub/inner', '-sub/inner/file'],
  'the deletion of a directory': [
    () => rm(inTree('sub'), { recursive: true }),
    '-sub',
    '-sub/file',
    '-sub/inner',
    '-sub/inner/file',
  ],
  'a link': [() => symlink('x', inTree('sub/new')), '+sub', '+sub/new'],
  'a link that is replaced': [
    async () => {
      await symlink('x', join(outside, 'link'));
      await rename(join(outside, 'link'), inTree('link'));
    },
    '+link',
  ],
  'a new name': [() => rename(inTree('file'), inTree('renamed')), '+renamed', '-file'],
  'a file that is replaced': [() => rename(inTree('other'), inTree('file')), '+file', '-other'],
  'a move between directories': [
    () => rename(inTree('sub/file'), inTree('sub/inner/moved')),
    '+sub',
    '+sub/inner',
    '+sub/inner/moved',
    '-sub/file',
  ],
  'a move into the tree': [() => rename(join(outside, 'file'), inTree('in')), '+in'],
  'a move out of the tree': [() => rename(inTree('file'), join(outside, 'out')), '-file'],
  'a directory that is moved out of the tree': [
    () => rename(inTree('sub/inner'), join(outside, 'out')),
    '+sub',
    '-sub/inner',
    '-sub/inner/file',
  ],
  'a directory that is moved into the tree': [
    async () => {
      await mkdir(join(outside, 'a/b'), { recursive: true });
      await writeFile(join(outside, 'a/b/c'), 'x');
      await rename(join(outside, 'a'), inTree('a'));
    },
    '+a',
    '+a/b',
    '+a/b/c',
  ],
  'a new directory, with files at once': [
    async () =>
      python(
        'import os,sys; os.makedirs(sys.argv[1] + "/a/b"); open(sys.argv[1] + "/a/b/c", "w").write("x")',
        root,
      ),
    '+a',
    '+a/b',
    '+a/b/c',
  ],
  'a new name outside': [() => link(inTree('file'), join(outside, 'name')), '+file'],
};

describe('a change that the next listing has', () => {
  for (const [name, [change, ...changes]] of Object.entries(CHANGES)) {
    it(name, async () => {
      const generation = await settle();
      await change();
      const next = await since(generation);
      expect(next.changes).toEqual(changes);
      // An answer that was lost is repeated.
      expect((await since(generation)).changes).toEqual(changes);
    });
  }

  it('a write into a directory that was moved into the tree before', async () => {
    const generation = await settle();
    await mkdir(join(outside, 'a'));
    await writeFile(join(outside, 'a/b'), 'x');
    await rename(join(outside, 'a'), inTree('a'));
    const next = await since(generation);
    expect(next.changes).toEqual(['+a', '+a/b']);
    await appendFile(inTree('a/b'), 'x');
    expect((await since(next.generation)).changes).toEqual(['+a/b']);
  });

  it('a write by a name outside of the tree', async () => {
    await link(inTree('sub/file'), join(outside, 'name'));
    const generation = await settle();
    await appendFile(join(outside, 'name'), 'x');
    const next = await since(generation);
    expect(next.changes).toEqual(['+sub/file']);
    const handle = await open(join(outside, 'name'), 'a');
    await unlink(join(outside, 'name'));
    const last = await since(next.generation);
    expect(last.changes).toEqual(['+sub/file']);
    await handle.write('by a name that is gone');
    expect((await since(last.generation)).changes).toEqual(['+sub/file']);
    await handle.close();
  });

  it('a write into a file that got its name after it was opened', async () => {
    const prepare = [
      'fd = os.open(os.path.dirname(path), os.O_TMPFILE | os.O_RDWR, 0o644)',
      // Only linkat follows the link in /proc.
      'os.link(f"/proc/self/fd/{fd}", path, src_dir_fd=fd, follow_symlinks=True)',
    ].join('\n');
    await using process = await writer(inTree('named'), prepare, 'os.write(fd, b"x")');
    const generation = await settle();
    await process.write();
    expect((await since(generation)).changes).toEqual(['+named']);
  });

  it('each of those that follow one another quickly', async () => {
    let generation = await settle();
    for (let turn = 0; turn < 50; turn += 1) {
      await writeFile(inTree(`new${turn}`), 'x');
      const next = await since(generation);
      expect(next.changes).toEqual([`+new${turn}`]);
      generation = next.generation;
    }
  });

  it('another directory in the place of the root', async () => {
    const generation = await settle();
    await rename(root, join(outside, 'root'));
    await expect(since(generation)).rejects.toMatchObject({ code: 'file_not_found' });
    await mkdir(root);
    await writeFile(inTree('new'), 'x');
    expect((await since(generation)).changes).toContain('+new');
    const next = await settle();
    await appendFile(inTree('new'), 'x');
    expect((await since(next)).changes).toEqual(['+new']);
  });

  it('a change after more events than the kernel keeps', async () => {
    const generation = await settle();
    const limit = Number(await readFile('/proc/sys/fs/fanotify/max_queued_events', 'utf8'));
    const code = [
      'import sys',
      'for index in range(int(sys.argv[2])):',
      '    with open(f"{sys.argv[1]}/{index}", "w") as file:',
      '        file.write("x")',
    ].join('\n');
    python(code, outside, String(limit + 100));
    await appendFile(inTree('file'), 'x');
    const next = await since(generation);
    expect(next.changes).toEqual(['+file']);
    // Events are reported again once the queue is empty.
    const settled = await settle();
    expect(await since(settled)).toEqual({ generation: settled, changes: [] });
    await appendFile(inTree('file'), 'x');
    expect((await since(settled)).changes).toEqual(['+file']);
  });
});

describe('a write through a memory map', () => {
  const prepare = ['fd = os.open(path, os.O_RDWR)', 'map = mmap.mmap(fd, 4)', 'os.close(fd)'].join(
    '\n',
  );

  it('is found by a pass over the whole tree', async () => {
    await using process = await writer(inTree('file'), prepare, 'map[0] = 120; map.flush()');
    const generation = await settle();
    await process.write();
    expect((await since(generation, true)).changes).toEqual(['+file']);
  });
});
