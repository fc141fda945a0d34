import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  chmod,
  mkdir,
  open,
  readdir,
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
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type GuestDaemon, startGuestDaemon } from '../../../test/guest-daemon.ts';
import type { GuestTree } from './guest-tree.ts';
import type { TreeContent, TreeEntry, TreeWrite } from './tree-entry.ts';

const SMALL = 64 * 1024;
const LIMIT = 100_000;
/** A file that was changed less than this ago, in ms, is not read by the loop for small files. */
const SETTLED_MS = 50;
const TIME_NS = 1_600_000_000_123_000_000n;

let daemon: GuestDaemon;
let root: string;
let tree: GuestTree;
let count = 0;

const signal = () => AbortSignal.timeout(120_000);
const inTree = (...names: string[]) => join(root, ...names);

async function list(): Promise<readonly TreeEntry[]> {
  const { changed } = await tree.list({ limit: LIMIT }, signal());
  return changed.toSorted((one, other) => one.path.compare(other.path));
}

/** Reads whole files in one request, by path. */
async function read(files: readonly TreeEntry[]) {
  const results = new Map<string, { status: string; content: Buffer }>();
  const ranges = files.map((file) => ({ file, offset: 0, length: file.size }));
  let parts: Buffer[] = [];
  for await (const piece of tree.read(ranges, signal())) {
    if ('status' in piece) {
      const path = files[piece.range]?.path.toString('latin1') ?? '';
      results.set(path, { status: piece.status, content: Buffer.concat(parts) });
      parts = [];
    } else parts.push(Buffer.isBuffer(piece.content) ? piece.content : Buffer.alloc(0));
  }
  return results;
}

async function statuses(files: readonly TreeEntry[]): Promise<Record<string, string>> {
  return Object.fromEntries([...(await read(files))].map(([path, { status }]) => [path, status]));
}

/** Waits until no file was changed a moment ago. */
async function settled(): Promise<void> {
  const now = Date.now();
  await expect.poll(() => Date.now() - now).toBeGreaterThan(2 * SETTLED_MS);
}

const file = (path: string | Buffer, content: readonly TreeContent[], size: number): TreeWrite => ({
  kind: 'file',
  path: Buffer.from(path),
  mode: 0o644,
  mtimeNs: TIME_NS,
  size,
  offset: 0,
  content,
});

beforeAll(async () => {
  daemon = await startGuestDaemon();
});
afterAll(() => daemon.stop());
afterEach(() => daemon.closeTrees());
beforeEach(async () => {
  count += 1;
  root = join(daemon.directory, `root-${count}`);
  await mkdir(root);
  tree = daemon.tree(root);
});

const NAMES: readonly (readonly [string, Buffer])[] = [
  ['a newline', Buffer.from('a\nb')],
  [
    'every byte that a name may have',
    Buffer.from([...Array(256).keys()].filter((byte) => byte !== 0 && byte !== 0x2f)),
  ],
  ['255 bytes', Buffer.alloc(255, 'x')],
  ['three dots', Buffer.from('...')],
  ['a leading dash', Buffer.from('-rf')],
  ['invalid UTF-8', Buffer.from([0xff, 0xfe, 0xc0])],
];

describe('names', () => {
  it.each(NAMES)('may have %s', async (_what, name) => {
    const content = randomBytes(100);
    const inner = Buffer.concat([name, Buffer.from('/'), name]);
    expect(await tree.write([file(inner, [content], 100)], signal())).toEqual([]);
    await settled();
    const entries = await list();
    expect(entries.map(({ path }) => path)).toEqual([name, inner]);
    const [found] = (await read(entries.slice(1))).values();
    expect(found).toEqual({ status: 'complete', content });
  });

  it('are skipped when their path is too long, and when they are temporary', async () => {
    const name = 'd'.repeat(255);
    await writeFile(inTree('.svc-tree-0'), 'x');
    // Longer paths than the kernel accepts in one call.
    const code = `
import os, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
for _ in range(17):
    os.mkdir('d' * 255, dir_fd=fd)
    inner = os.open('d' * 255, os.O_RDONLY, dir_fd=fd)
    os.close(fd)
    fd = inner
`;
    execFileSync('python3', ['-c', code, root]);
    const { changed, skipped } = await tree.list({ limit: LIMIT }, signal());
    // 15 names with 14 slashes have 3,839 bytes, 16 have 4,095.
    expect(changed.map(({ path }) => path.length).sort((a, b) => a - b)).toEqual(
      Array.from({ length: 16 }, (_, index) => 256 * (index + 1) - 1),
    );
    expect(
      changed.every(({ path }) =>
        path
          .toString()
          .split('/')
          .every((part) => part === name),
      ),
    ).toBe(true);
    expect(skipped).toBe(1);
    execFileSync('rm', ['-rf', root]);
  });
});

it('lists a directory of 5,000 entries, and links with the longest targets', async () => {
  const code = `
import os, sys
os.chdir(sys.argv[1])
for index in range(5000):
    if index % 10 == 0:
        os.symlink(('t%d' % index).ljust(4095, '.'), 'link%d' % index)
    else:
        open('file%d' % index, 'w').close()
`;
  execFileSync('python3', ['-c', code, root]);
  const entries = await list();
  expect(new Set(entries.map(({ path }) => path.toString())).size).toBe(5000);
  const links = entries.filter(({ kind }) => kind === 'symlink');
  expect(links).toHaveLength(500);
  for (const { path, target } of links) {
    expect(target.toString()).toBe(`t${path.subarray(4)}`.padEnd(4095, '.'));
  }
});

it('lists and reads times that 64 bits of nanoseconds cannot express', async () => {
  await writeFile(inTree('late'), 'x');
  await utimes(inTree('late'), 12_000_000_000, 12_000_000_000);
  await writeFile(inTree('early'), 'x');
  await utimes(inTree('early'), -2_000_000_000, -2_000_000_000);
  await settled();
  const entries = await list();
  expect(await statuses(entries)).toEqual({ early: 'complete', late: 'complete' });
});

describe('a read of small files', () => {
  it('returns contents of all sizes around what fits, in several directories', async () => {
    const sizes = [1, 4096, SMALL - 10, SMALL - 9, SMALL - 1, SMALL, SMALL + 1];
    const contents = new Map<string, Buffer>();
    for (let index = 0; index < 70; index += 1) {
      const content = randomBytes(sizes[index % sizes.length] ?? 0);
      const path = `d${Math.floor(index / 30)}/f${index}`;
      contents.set(path, content);
      await mkdir(inTree(path, '..'), { recursive: true });
      await writeFile(inTree(path), content);
    }
    await settled();
    const found = await read((await list()).filter(({ kind }) => kind === 'file'));
    expect(found.size).toBe(contents.size);
    for (const [path, { status, content }] of found) {
      expect([path, status, content.equals(contents.get(path) ?? Buffer.alloc(0))]).toEqual([
        path,
        'complete',
        true,
      ]);
    }
  });

  it('tells how each was read that is not the one that was listed', async () => {
    const names = [
      'a',
      'b-shrunk',
      'c',
      'd-link',
      'e-pipe',
      'f-gone',
      'g-grown',
      'h-directory',
      'i-touched',
      'j',
    ];
    for (const name of names) await writeFile(inTree(name), name.padEnd(1000, '.'));
    await settled();
    const entries = await list();
    await truncate(inTree('b-shrunk'), 10);
    for (const name of ['d-link', 'e-pipe', 'f-gone', 'h-directory']) await rm(inTree(name));
    await symlink('a', inTree('d-link'));
    execFileSync('mkfifo', [inTree('e-pipe')]);
    await truncate(inTree('g-grown'), 2000);
    await mkdir(inTree('h-directory'));
    await chmod(inTree('i-touched'), 0o600);
    await settled();
    expect(await statuses(entries)).toEqual({
      a: 'complete',
      'b-shrunk': 'changed',
      c: 'complete',
      'd-link': 'refused',
      'e-pipe': 'refused',
      'f-gone': 'gone',
      'g-grown': 'changed',
      'h-directory': 'refused',
      'i-touched': 'changed',
      j: 'complete',
    });
  });

  it('tells which of them a process has open for writing', async () => {
    for (const name of ['a', 'b', 'c']) await writeFile(inTree(name), 'content');
    await using _writer = await open(inTree('b'), 'r+');
    await settled();
    const entries = await list();
    const found = await read(entries);
    expect([...found.values()].map(({ status }) => status)).toEqual([
      'complete',
      'open',
      'complete',
    ]);
    expect(found.get('b')?.content.toString()).toBe('content');
    // The daemon has left no lease, for which this would wait.
    await writeFile(inTree('a'), 'other');
  });

  it('ends at another directory with the same beginning, and at a link in the place of one', async () => {
    for (const path of ['d/a', 'd/b', 'd2/a', 'd/e/a']) {
      await mkdir(inTree(path, '..'), { recursive: true });
      await writeFile(inTree(path), path);
    }
    await settled();
    const files = (await list()).filter(({ kind }) => kind === 'file');
    const found = await read(files);
    for (const [path, { status, content }] of found) {
      expect([status, content.toString()]).toEqual(['complete', path]);
    }
    await rename(inTree('d'), inTree('moved'));
    await symlink('moved', inTree('d'));
    expect(await statuses(files)).toEqual({
      'd/a': 'gone',
      'd/b': 'gone',
      'd/e/a': 'gone',
      'd2/a': 'complete',
    });
  });

  it('has the holes of a sparse file', async () => {
    await writeFile(inTree('a'), 'x');
    await truncate(inTree('a'), 40_000);
    await writeFile(inTree('b'), 'x');
    await settled();
    const [sparse, plain] = await list();
    if (sparse === undefined || plain === undefined) throw new Error('a file is missing');
    let holes = 0;
    for await (const piece of tree.read(
      [
        { file: sparse, offset: 0, length: 40_000 },
        { file: plain, offset: 0, length: 1 },
      ],
      signal(),
    )) {
      if ('content' in piece && !Buffer.isBuffer(piece.content)) holes += piece.content.hole;
    }
    expect(holes).toBeGreaterThan(30_000);
  });
});

describe('a write of small files', () => {
  it('makes new files of any number of segments, with their modes and times', async () => {
    const sizes = [0, 1, 4096, SMALL - 1, SMALL, SMALL + 1];
    const contents = new Map<string, Buffer>();
    const writes = Array.from({ length: 300 }, (_, index) => {
      const content = randomBytes(sizes[index % sizes.length] ?? 0);
      const path = `d${Math.floor(index / 100)}/f${index}`;
      contents.set(path, content);
      const cut = index % 7 === 0 ? Math.floor(content.length / 3) : 0;
      const segments = [content.subarray(0, cut), content.subarray(cut)].filter(
        ({ length }) => length > 0,
      );
      return {
        ...file(path, segments, content.length),
        mode: index % 2 === 0 ? 0o664 : 0o4755,
      } as TreeWrite;
    });
    expect(await tree.write(writes, signal())).toEqual([]);
    for (const [index, [path, content]] of [...contents].entries()) {
      expect((await readFile(inTree(path))).equals(content)).toBe(true);
      const { mode } = await stat(inTree(path));
      expect([path, mode & 0o7777]).toEqual([path, index % 2 === 0 ? 0o664 : 0o4755]);
    }
    const entries = await list();
    expect(
      entries.filter(({ kind }) => kind === 'file').every(({ mtimeNs }) => mtimeNs === TIME_NS),
    ).toBe(true);
    expect((await readdir(root)).sort()).toEqual(['d0', 'd1', 'd2']);
  });

  it('replaces what is there, makes holes, and refuses content of another size', async () => {
    await mkdir(inTree('directory'));
    await writeFile(inTree('old'), 'old');
    await symlink('/etc/passwd', inTree('link'));
    execFileSync('mkfifo', [inTree('pipe')]);
    const x = Buffer.from('x');
    const refused = await tree.write(
      [
        file('first', [x], 1),
        file('directory', [x], 1),
        file('old', [Buffer.from('new')], 3),
        file('longer', [Buffer.from('more than 4')], 4),
        file('link', [x], 1),
        file('pipe', [x], 1),
        file('sparse', [{ hole: 9000 }, x], 9001),
        file('n'.repeat(255), [x], 1),
        file('directory/inner', [x, x], 2),
        file('last', [], 0),
      ],
      signal(),
    );
    expect(refused.map(({ index }) => index)).toEqual([1, 3]);
    expect(await readFile(inTree('old'), 'utf8')).toBe('new');
    expect(await readFile(inTree('link'), 'utf8')).toBe('x');
    expect((await stat(inTree('pipe'))).isFile()).toBe(true);
    expect((await readFile(inTree('sparse'))).equals(Buffer.concat([Buffer.alloc(9000), x]))).toBe(
      true,
    );
    expect(await readFile(inTree('directory/inner'), 'utf8')).toBe('xx');
    expect((await readdir(root)).sort()).toEqual(
      ['directory', 'first', 'last', 'link', 'n'.repeat(255), 'old', 'pipe', 'sparse'].sort(),
    );
  });

  it('keeps times before 1970', async () => {
    await tree.write([{ ...file('old', [], 0), mtimeNs: -1_500_000_001n } as TreeWrite], signal());
    expect((await list())[0]?.mtimeNs).toBe(-1_500_000_001n);
  });
});

/** Calls the library as `trees.py` does, with arguments that it never has. */
const CALLS = `
import ctypes, os, struct, sys
sys.dont_write_bytecode = True
sys.path.append(sys.argv[1])
import trees
os.chdir(sys.argv[2])
fd = os.open('.', os.O_RDONLY)
room = 1 << 17
buffer = trees.Buffer(room)

def lists(size):
    directory = os.open('.', os.O_RDONLY)
    skipped = ctypes.c_uint64()
    result = trees.native.list_entries(directory, os.fstat(directory).st_dev, b'', 0, buffer.address, size, skipped)
    os.close(directory)
    return result

def range_of(name, path=None, offset=0, length=None, path_length=None):
    status = os.lstat(name)
    path = path or name.encode()
    return trees.RANGE.pack(offset, status.st_size if length is None else length, status.st_size, status.st_ino,
                            status.st_mtime_ns, status.st_ctime_ns, path_length or len(path)) + path

def reads(ranges, size=room, prefix=0):
    written = ctypes.c_size_t()
    done = trees.native.read_files(fd, prefix, ranges, 0, len(ranges), buffer.address, size, written)
    return done, written.value

def entry_of(path, segments, size=1, offset=0, mode=0o644, kind=trees.FILE, path_length=None):
    return trees.ENTRY.pack(kind, mode, 0, offset, size, path_length or len(path), 0) + path + segments

def creates(entries, most=10, prefix=0):
    count = ctypes.c_size_t()
    done = trees.native.create_files(fd, prefix, 0o022, entries, 0, len(entries), most, count)
    return done, count.value

record = trees.RECORD_HEAD + 1
assert lists(record) == record
assert lists(record - 1) == -105, 'ENOBUFS'
assert trees.native.list_entries(-1, 0, b'', 0, buffer.address, room, ctypes.c_uint64()) == -9, 'EBADF'

good = range_of('a')
output = 4 + 5 + 4 + 1
assert reads(good) == (len(good), output)
assert reads(good + good, 2 * output) == (2 * len(good), 2 * output)
assert reads(good + good, 2 * output - 1) == (len(good), output)
for size in range(len(good)):
    assert reads(good[:size]) == (0, 0)
    assert reads(good + good[:size]) == (len(good), output)
for bad in (range_of('a', b'./a'), range_of('a', b'..'), range_of('a', b'.'), range_of('a', b'a\\0'), range_of('a', b'/'),
            range_of('a', b'a' * 256), range_of('a', offset=1), range_of('a', length=0), range_of('a', length=4),
            range_of('a', length=1 << 63), range_of('a', path_length=0xffff), range_of('.'), range_of('a', b'missing')):
    assert reads(bad) == (0, 0)
    assert reads(good + bad) == (len(good), output)
assert reads(good, prefix=1) == (0, 0)
assert reads(good, prefix=1 << 40) == (0, 0)

segment = lambda data: struct.pack('>I', len(data)) + data
end = bytes(4)
whole = entry_of(b'b', segment(b'x') + end)
for size in range(len(whole)):
    assert creates(whole[:size]) == (0, 0)
bads = [
    entry_of(b'b', segment(b'xy') + end), entry_of(b'b', end), entry_of(b'b', segment(b'x') + end, size=2),
    entry_of(b'b', segment(b'x') + end, offset=1), entry_of(b'b', segment(b'x') + end, mode=0o10000),
    entry_of(b'b', segment(b'x') + end, size=1 << 63), entry_of(b'b', segment(b'x') + end, path_length=0xffff),
    entry_of(b'b', struct.pack('>I', 1 << 31 | 1) + end), entry_of(b'b', struct.pack('>I', 0xffffffff) + end),
    entry_of(b'b', segment(b'x') + end, kind=trees.DIRECTORY), entry_of(b'..', segment(b'x') + end),
    entry_of(b'b/c', segment(b'x') + end), entry_of(b'b\\0', segment(b'x') + end), entry_of(b'a', segment(b'x') + end),
    entry_of(b'b' * 256, segment(b'x') + end),
]
for bad in bads:
    assert creates(bad) == (0, 0)
assert creates(whole, 0) == (0, 0)
assert os.listdir('.') == ['a']
assert creates(whole + bads[0]) == (len(whole), 1)
assert sorted(os.listdir('.')) == ['a', 'b']
`;

it('does nothing for arguments that are cut off, out of bounds or out of the tree', async () => {
  await writeFile(inTree('a'), '12345');
  await settled();
  const programs = join(daemon.directory, 'usr/lib/svc');
  execFileSync('python3', ['-I', '-S', '-c', CALLS, programs, root]);
});
