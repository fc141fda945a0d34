import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import {
  appendFile,
  chmod,
  lstat,
  mkdir,
  open,
  readdir,
  readFile,
  readlink,
  rename,
  rm,
  stat,
  symlink,
  truncate,
  utimes,
  writeFile,
} from 'node:fs/promises';
import { type AddressInfo, connect, createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type GuestDaemon, startGuestDaemon } from '../../../test/guest-daemon.ts';
import { GuestTree } from './guest-tree.ts';
import type { TreeEntry, TreeListing, TreeWrite } from './tree-entry.ts';

const LIMIT = 1000;
const KIB = 1024;
const MIB = 1024 * KIB;
/** The length before each segment of a content, and after the last one. */
const LENGTH_BYTES = 4;

let directory: string;
let daemon: GuestDaemon;
let root: string;
let tree: GuestTree;
let count = 0;

const signal = () => AbortSignal.timeout(120_000);
const list = (since?: string, limit = LIMIT) => tree.list({ since, limit }, signal());
const inTree = (...names: string[]) => join(root, ...names);
const names = ({ changed }: TreeListing) => changed.map(({ path }) => path.toString()).sort();
const gone = ({ deleted }: TreeListing) => deleted.map((path) => path.toString()).sort();

function entryOf(listing: TreeListing, path: string): TreeEntry {
  const found = listing.changed.find((entry) => entry.path.toString() === path);
  if (found === undefined) throw new Error(`no entry ${path}`);
  return found;
}

/** The content and status of one range. */
const read = (file: TreeEntry, offset = 0, length = file.size) =>
  readFrom(tree, file, offset, length);

async function readFrom(from: GuestTree, file: TreeEntry, offset = 0, length = file.size) {
  let status: string | undefined;
  let holes = 0;
  const parts: Buffer[] = [];
  for await (const piece of from.read([{ file, offset, length }], signal())) {
    if ('status' in piece) status = piece.status;
    else if (Buffer.isBuffer(piece.content)) parts.push(piece.content);
    else {
      holes += piece.content.hole;
      parts.push(Buffer.alloc(piece.content.hole));
    }
  }
  return { status, holes, content: Buffer.concat(parts) };
}

const file = (path: string | Buffer, content: Buffer | string, mode = 0o644): TreeWrite => ({
  kind: 'file',
  path: Buffer.from(path),
  mode,
  mtimeNs: 1_600_000_000_123_000_000n,
  size: Buffer.from(content).length,
  offset: 0,
  content: [Buffer.from(content)],
});

/** A link to the guest that delivers what the host sends, and holds back what the guest sends. */
async function heldLink(guest: GuestDaemon['address']) {
  const toGuest = connect(guest).pause();
  await once(toGuest, 'connect');
  const server = createServer((fromHost) => {
    fromHost.pipe(toGuest);
    released.promise.then(() => toGuest.pipe(fromHost));
  }).listen(0, '127.0.0.1');
  const released = Promise.withResolvers<void>();
  await once(server, 'listening');
  return {
    address: { host: '127.0.0.1', port: (server.address() as AddressInfo).port },
    guestPort: toGuest.localPort as number,
    release: released.resolve,
    async [Symbol.asyncDispose]() {
      released.resolve();
      toGuest.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

/** The bytes sent to a local port, and not read yet, wherever the kernel keeps them. See proc(5), `/proc/net/tcp`. */
async function unreadBytes(port: number): Promise<number> {
  const hex = port.toString(16).toUpperCase().padStart(4, '0');
  let bytes = 0;
  for (const line of (await readFile('/proc/net/tcp', 'utf8')).split('\n')) {
    const [, local, remote, , queues] = line.trim().split(/\s+/);
    const [toSend, received] = (queues ?? '0:0')
      .split(':')
      .map((size) => Number.parseInt(size, 16));
    if (local?.endsWith(`:${hex}`)) bytes += received ?? 0;
    if (remote?.endsWith(`:${hex}`)) bytes += toSend ?? 0;
  }
  return bytes;
}

beforeAll(async () => {
  daemon = await startGuestDaemon();
  directory = daemon.directory;
});

afterAll(() => daemon.stop());

afterEach(() => daemon.closeTrees());

beforeEach(async () => {
  count += 1;
  root = join(directory, String(count));
  await mkdir(root);
  tree = daemon.tree(root);
});

describe('a listing', () => {
  it('waits with its caller while the guest looks, and receives what it found afterwards', async () => {
    await writeFile(join(root, 'file'), 'x');
    await using link = await heldLink(daemon.address);
    const linked = new GuestTree({ address: link.address, token: daemon.token, root });
    let waits = 0;
    const whileLooking = <T>(looked: Promise<T>) => {
      waits += 1;
      return looked.finally(() => {
        waits -= 1;
      });
    };
    const listing = linked.list({ limit: LIMIT }, signal(), whileLooking);
    await expect.poll(() => unreadBytes(link.guestPort)).toBeGreaterThan(0);
    expect(waits).toBe(1);
    link.release();
    expect(names(await listing)).toEqual(['file']);
    expect(waits).toBe(0);
    linked.close();
  });

  it('has every kind of entry below the root, and only what is part of a tree', async () => {
    await mkdir(inTree('sub'));
    await writeFile(inTree('sub', 'file'), 'content');
    await chmod(inTree('sub', 'file'), 0o4751);
    await utimes(inTree('sub', 'file'), 1_600_000_000, 1_600_000_000.5);
    await symlink('/etc', inTree('link'));
    execFileSync('mkfifo', [inTree('pipe')]);
    const listing = await list();
    expect(names(listing)).toEqual(['link', 'sub', 'sub/file']);
    expect(listing).toMatchObject({ complete: true, skipped: 1, deleted: [] });
    const { ino } = await stat(inTree('sub', 'file'));
    expect(entryOf(listing, 'sub/file')).toMatchObject({
      kind: 'file',
      mode: 0o4751,
      size: 7,
      mtimeNs: 1_600_000_000_500_000_000n,
      inode: BigInt(ino),
    });
    expect(entryOf(listing, 'link')).toMatchObject({
      kind: 'symlink',
      target: Buffer.from('/etc'),
    });
    expect(entryOf(listing, 'sub')).toMatchObject({ kind: 'directory', size: 0 });
  });

  it('has names in any encoding', async () => {
    const name = Buffer.from([0xff, 0x0a, 0xe4, 0x20, 0x5c, 0x80]);
    await writeFile(Buffer.concat([Buffer.from(`${root}/`), name]), 'x');
    const listing = await list();
    expect(listing.changed.map(({ path }) => path)).toEqual([name]);
    expect((await read(listing.changed[0] as TreeEntry)).content.toString()).toBe('x');
  });

  it('has only what differs from the one that is acknowledged', async () => {
    await mkdir(inTree('sub'));
    for (const name of ['kept', 'changed', 'removed', 'moved', 'sub/mode']) {
      await writeFile(inTree(name), name);
    }
    const first = await list();
    const same = await list(first.generation);
    expect(same).toMatchObject({ complete: false, changed: [], deleted: [] });
    await appendFile(inTree('changed'), '!');
    await rm(inTree('removed'));
    await rename(inTree('moved'), inTree('sub/moved'));
    await chmod(inTree('sub/mode'), 0o600);
    const second = await list(same.generation);
    expect(names(second)).toEqual(['changed', 'sub', 'sub/mode', 'sub/moved']);
    expect(gone(second)).toEqual(['moved', 'removed']);
    // A listing that was lost on the way is repeated.
    const again = await list(same.generation);
    expect([names(again), gone(again)]).toEqual([names(second), gone(second)]);
    expect(await list(again.generation)).toMatchObject({ changed: [], deleted: [] });
  });

  it('is complete when the guest does not know the one that is acknowledged', async () => {
    await writeFile(inTree('file'), 'x');
    const first = await list();
    await list(first.generation);
    const other = await list('0'.repeat(32));
    expect(other).toMatchObject({ complete: true, deleted: [] });
    expect(names(other)).toEqual(['file']);
  });

  it('that is silent acknowledges itself', async () => {
    await writeFile(inTree('old'), 'x');
    const { generation, changed } = await tree.list({ limit: LIMIT, silent: true }, signal());
    expect(changed).toEqual([]);
    await writeFile(inTree('new'), 'x');
    const next = await list(generation);
    expect([next.complete, names(next)]).toEqual([false, ['new']]);
  });

  it('skips what is too much, and never reports known entries as deleted because of it', async () => {
    for (const name of ['b', 'c']) await writeFile(inTree(name), name);
    const first = await list(undefined, 2);
    for (let index = 0; index < 20; index += 1) await writeFile(inTree(`a${index}`), '');
    const second = await list(first.generation, 2);
    expect(second).toMatchObject({ changed: [], deleted: [], skipped: 20 });
  });

  it('fails when there is no such directory, or a link in its place', async () => {
    await writeFile(inTree('file'), 'x');
    await rename(root, `${root}-moved`);
    await expect(list()).rejects.toMatchObject({ code: 'file_not_found' });
    await symlink(`${root}-moved`, root);
    await expect(list()).rejects.toMatchObject({ code: 'parent_not_directory' });
  });
});

describe('a read', () => {
  it('returns many files in one request, and ranges of large ones', async () => {
    const contents = new Map<string, Buffer>([
      ['empty', Buffer.alloc(0)],
      ['large', randomBytes(3 * MIB + 17)],
      ...Array.from({ length: 50 }, (_, at) => [`f${at}`, randomBytes(at * 100)] as const),
    ]);
    for (const [name, content] of contents) await writeFile(inTree(name), content);
    const { changed } = await list();
    const ranges = changed.map((entry) => ({ file: entry, offset: 0, length: entry.size }));
    const received = new Map<number, Buffer[]>();
    for await (const piece of tree.read(ranges, signal())) {
      if ('status' in piece) expect(piece.status).toBe('complete');
      else if (Buffer.isBuffer(piece.content))
        received.set(piece.range, [...(received.get(piece.range) ?? []), piece.content]);
    }
    for (const [index, { path }] of changed.entries()) {
      const content = Buffer.concat(received.get(index) ?? []);
      expect(content.equals(contents.get(path.toString()) as Buffer)).toBe(true);
    }
    const large = changed.find(({ path }) => path.toString() === 'large') as TreeEntry;
    const part = await read(large, MIB + 5, 2 * MIB);
    expect(
      part.content.equals((contents.get('large') as Buffer).subarray(MIB + 5, 3 * MIB + 5)),
    ).toBe(true);
  });

  it('reads no holes', async () => {
    const handle = await open(inTree('sparse'), 'w');
    await handle.write(Buffer.alloc(4096, 1), 0, 4096, 16 * MIB);
    await handle.close();
    await truncate(inTree('sparse'), 32 * MIB);
    const { changed } = await list();
    const { status, holes, content } = await read(changed[0] as TreeEntry);
    expect([status, content.length]).toEqual(['complete', 32 * MIB]);
    expect(holes).toBeGreaterThan(24 * MIB);
    expect(content[16 * MIB]).toBe(1);
  });

  it('says when the file is not the one that was listed', async () => {
    for (const name of ['written', 'replaced', 'removed', 'linked', 'above/file']) {
      await mkdir(inTree(name, '..'), { recursive: true });
      await writeFile(inTree(name), 'old');
    }
    const listing = await list();
    await writeFile(inTree('written'), 'new');
    await writeFile(inTree('other'), 'old');
    await rename(inTree('other'), inTree('replaced'));
    await rm(inTree('removed'));
    await rm(inTree('linked'));
    await symlink('/etc/passwd', inTree('linked'));
    await rename(inTree('above'), inTree('moved'));
    await symlink('moved', inTree('above'));
    const statusOf = async (path: string) => (await read(entryOf(listing, path))).status;
    expect(await statusOf('written')).toBe('changed');
    expect(await statusOf('replaced')).toBe('changed');
    expect(await statusOf('removed')).toBe('gone');
    expect(await statusOf('linked')).toBe('refused');
    expect(await statusOf('above/file')).toBe('gone');
  });

  it('returns the content that was checked, however late the host takes it', async () => {
    const content = Buffer.alloc(100 * KIB, 'a');
    await writeFile(inTree('file'), content);
    const { changed } = await list();
    await using link = await heldLink(daemon.address);
    const held = new GuestTree({ address: link.address, token: daemon.token, root });
    try {
      const reading = readFrom(held, changed[0] as TreeEntry);
      const whole = '{"ok": true}\n'.length + LENGTH_BYTES + content.length + LENGTH_BYTES + 1;
      await expect.poll(() => unreadBytes(link.guestPort)).toBe(whole);
      await writeFile(inTree('file'), Buffer.alloc(content.length, 'b'), { flag: 'r+' });
      link.release();
      const { status, content: received } = await reading;
      expect([status, received.equals(content)]).toEqual(['complete', true]);
    } finally {
      held.close();
    }
  });

  it('never returns a mixture of two contents as complete', async () => {
    const contents = ['a', 'b'].map((letter) => Buffer.alloc(4 * MIB, letter));
    await writeFile(inTree('file'), contents[0] as Buffer);
    let turns = 0;
    let stopped = false;
    const writing = (async () => {
      while (!stopped) {
        turns += 1;
        await writeFile(inTree('file'), contents[turns % 2] as Buffer, { flag: 'r+' });
        await sleep((turns % 10) * 20);
      }
    })();
    // On a slow machine, every read may meet a write. The last one meets none.
    const readOnce = async () => {
      const { changed } = await list();
      const { status, content } = await read(changed[0] as TreeEntry);
      if (status === 'complete') expect(contents.some((whole) => whole.equals(content))).toBe(true);
      return status;
    };
    try {
      while (turns < 20) await readOnce();
    } finally {
      stopped = true;
      await writing;
    }
    expect(await readOnce()).toBe('complete');
  });

  it('says that a process has the file open for writing', async () => {
    const handle = await open(inTree('file'), 'w');
    await handle.write('old');
    const { changed } = await list();
    expect(await read(changed[0] as TreeEntry)).toMatchObject({ status: 'open' });
    await handle.close();
    expect(await read(changed[0] as TreeEntry)).toMatchObject({ status: 'complete' });
  });

  it('sees a write in the same tick of the clock as the one before', async () => {
    const torn: string[] = [];
    for (let turn = 0; turn < 15; turn += 1) {
      await writeFile(inTree('file'), 'old');
      const listing = await list();
      const { status, content } = await read(entryOf(listing, 'file'));
      await writeFile(inTree('file'), 'new');
      const next = await list(listing.generation);
      if (status === 'complete' && names(next).length === 0) torn.push(content.toString());
    }
    expect(torn).toEqual([]);
  });
});

describe('a write', () => {
  it('makes files, directories and links with their modes and times, and removes them', async () => {
    const name = Buffer.from([0x64, 0xff]);
    const large = randomBytes(2 * MIB + 3);
    const time = 1_600_000_000_123_000_000n;
    const refused = await tree.write(
      [
        { kind: 'directory', path: Buffer.from('made'), mode: 0o700, mtimeNs: time },
        file('made/script', '#!/bin/sh', 0o755),
        file('implied/parent/file', 'x', 0o600),
        file(name, ''),
        file('large', large),
        {
          kind: 'symlink',
          path: Buffer.from('link'),
          target: Buffer.from('../out'),
          mtimeNs: time,
        },
        { kind: 'directory', path: Buffer.from('made'), mode: 0o750, mtimeNs: time },
      ],
      signal(),
    );
    expect(refused).toEqual([]);
    expect(await readFile(inTree('made/script'), 'utf8')).toBe('#!/bin/sh');
    expect((await readFile(inTree('large'))).equals(large)).toBe(true);
    expect(await readlink(inTree('link'))).toBe('../out');
    const listing = await list();
    expect(listing.changed.some(({ path }) => path.equals(name))).toBe(true);
    for (const path of ['made', 'made/script', 'large', 'link']) {
      expect(entryOf(listing, path).mtimeNs).toBe(time);
    }
    expect(entryOf(listing, 'made').mode).toBe(0o750);
    expect(entryOf(listing, 'made/script').mode).toBe(0o755);
    await tree.write(
      ['made/script', 'made', 'link'].map((path) => ({
        kind: 'deleted' as const,
        path: Buffer.from(path),
      })),
      signal(),
    );
    expect(gone(await list(listing.generation))).toEqual(['link', 'made', 'made/script']);
  });

  it('goes on after a part, with holes, and gives the file its name with the last one', async () => {
    const [head, tail] = [randomBytes(MIB), randomBytes(MIB)];
    const size = 32 * MIB;
    const part = (offset: number, content: readonly (Buffer | { hole: number })[]): TreeWrite => ({
      ...(file('large', '') as Extract<TreeWrite, { kind: 'file' }>),
      size,
      offset,
      content,
    });
    await tree.write([part(0, [head])], signal());
    // The connection breaks in the middle of the next part.
    const broken = tree.write(
      [
        {
          ...part(MIB, []),
          content: (async function* () {
            yield Buffer.alloc(MIB, 'x');
            throw new Error('broken');
          })(),
        } as TreeWrite,
      ],
      signal(),
    );
    await expect(broken).rejects.toThrow('broken');
    expect(await list()).toMatchObject({ changed: [], skipped: 0 });
    await tree.write([part(MIB, [{ hole: size - 2 * MIB }, tail])], signal());
    expect(await readdir(root)).toEqual(['large']);
    const { blocks } = await stat(inTree('large'));
    expect(blocks * 512).toBeLessThan(8 * MIB);
    const whole = Buffer.concat([head, Buffer.alloc(size - 2 * MIB), tail]);
    expect((await readFile(inTree('large'))).equals(whole)).toBe(true);
    const [missing] = await tree.write(
      [{ ...part(5, []), path: Buffer.from('other') } as TreeWrite],
      signal(),
    );
    expect(missing).toEqual({ index: 0, code: 'file_not_found' });
  });

  it('never leaves the tree through a link, and writes the others', async () => {
    await mkdir(inTree('..', `outside-${count}`));
    await symlink(`../outside-${count}`, inTree('way'));
    await symlink(`../outside-${count}/file`, inTree('file'));
    await writeFile(inTree('plain'), 'x');
    const refused = await tree.write(
      [
        file('way/file', 'x'),
        file('way/deep/file', Buffer.alloc(200_000)),
        { kind: 'directory', path: Buffer.from('way/new'), mode: 0o755, mtimeNs: 0n },
        { kind: 'symlink', path: Buffer.from('way/link'), target: Buffer.from('x'), mtimeNs: 0n },
        file('plain/file', 'x'),
        file('file', 'mine'),
      ],
      signal(),
    );
    expect(refused.map(({ index }) => index)).toEqual([0, 1, 2, 3, 4]);
    expect(await readdir(inTree('..', `outside-${count}`))).toEqual([]);
    expect((await lstat(inTree('file'))).isFile()).toBe(true);
    expect(await readFile(inTree('file'), 'utf8')).toBe('mine');
  });

  it('makes the root', async () => {
    await rm(root, { recursive: true });
    await tree.write([file('a', 'x')], signal());
    expect(await readdir(root)).toEqual(['a']);
  });
});
