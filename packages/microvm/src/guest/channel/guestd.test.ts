import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmod,
  lstat,
  mkdir,
  readdir,
  readFile,
  readlink,
  stat,
  symlink,
  truncate,
  writeFile,
} from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type GuestDaemon, startGuestDaemon } from '../../../test/guest-daemon.ts';
import { GuestChannel } from './guest-channel.ts';

let directory: string;
let daemon: GuestDaemon;
let channel: GuestChannel;
let count = 0;
/** A fresh directory for each test. */
let work: string;

const signal = () => AbortSignal.timeout(20_000);
const write = (path: string, text: string | Buffer) =>
  channel.upload(path, Readable.from(text.length === 0 ? [] : [Buffer.from(text)]), signal());
async function read(path: string) {
  const { size, stream } = await channel.download(path, signal());
  return { size, content: await buffer(stream) };
}

beforeAll(async () => {
  daemon = await startGuestDaemon();
  directory = daemon.directory;
  channel = new GuestChannel(daemon.address, daemon.token);
});

afterAll(async () => {
  channel.close();
  await daemon.stop();
});

beforeEach(async () => {
  count += 1;
  work = join(directory, String(count));
  await mkdir(work);
});

describe('an upload', () => {
  test('writes an empty file', async () => {
    await write(join(work, 'empty'), '');
    expect(await read(join(work, 'empty'))).toEqual({ size: 0, content: Buffer.alloc(0) });
  });

  test.each([
    ['absolute', () => join(work, 'target')],
    ['relative', () => 'target'],
  ])('onto a symbolic link writes its %s target and keeps the link', async (_kind, target) => {
    await writeFile(join(work, 'target'), 'old');
    await chmod(join(work, 'target'), 0o751);
    await symlink(target(), join(work, 'second'));
    await symlink('second', join(work, 'first'));
    await write(join(work, 'first'), 'new');
    expect(await readlink(join(work, 'first'))).toBe('second');
    expect(await readlink(join(work, 'second'))).toBe(target());
    expect(await readFile(join(work, 'target'), 'utf8')).toBe('new');
    expect((await stat(join(work, 'target'))).mode & 0o777).toBe(0o751);
    expect((await readdir(work)).sort()).toEqual(['first', 'second', 'target']);
  });

  test('onto a dangling link creates its target', async () => {
    await mkdir(join(work, 'sub'));
    await symlink('sub/made', join(work, 'link'));
    await write(join(work, 'link'), 'x');
    expect((await lstat(join(work, 'link'))).isSymbolicLink()).toBe(true);
    expect(await readFile(join(work, 'sub/made'), 'utf8')).toBe('x');
  });

  test.each([
    ['a dangling link into nowhere', 'nowhere', 'parent_not_found'],
    ['a link loop', 'loop', 'symlink_loop'],
    ['a path through a link loop', 'loop/file', 'symlink_loop'],
    ['a link to a directory', 'link-to-directory', 'is_directory'],
    ['a directory', 'directory', 'is_directory'],
    ['a missing parent', 'missing/file', 'parent_not_found'],
    ['a file as parent', 'file/child', 'parent_not_directory'],
    ['a file as grandparent', 'file/child/grandchild', 'parent_not_directory'],
    ['a pipe', 'pipe', 'not_a_file'],
  ])('to %s is refused', async (_case, name, code) => {
    await mkdir(join(work, 'directory'));
    await writeFile(join(work, 'file'), '');
    await symlink('missing/target', join(work, 'nowhere'));
    await symlink('loop', join(work, 'loop'));
    await symlink('directory', join(work, 'link-to-directory'));
    await once(spawn('mkfifo', [join(work, 'pipe')]), 'exit');
    const before = await readdir(work);
    await expect(write(join(work, name), 'x')).rejects.toMatchObject({ code });
    expect(await readdir(work)).toEqual(before);
    expect((await lstat(join(work, 'pipe'))).isFIFO()).toBe(true);
  });
});

describe('a download', () => {
  test.each(['/proc/version', '/proc/self/status', '/sys/devices/system/cpu/online'])(
    'of %s has its content and its real size',
    async (path) => {
      const { size, content } = await read(path);
      expect(size).toBe(content.length);
      expect(content.length).toBeGreaterThan(0);
      expect(content.includes(0)).toBe(false);
    },
  );

  test('of a long file in /proc has no size', async () => {
    const { size, content } = await read('/proc/kallsyms');
    expect(size).toBeUndefined();
    expect(content.length).toBeGreaterThan(1_000_000);
    expect(content.at(-1)).toBe(0x0a);
  });

  test('of a file that is all hole has its content', async () => {
    await writeFile(join(work, 'hole'), '');
    await truncate(join(work, 'hole'), 300_000);
    const { content } = await read(join(work, 'hole'));
    expect(content.equals(Buffer.alloc(300_000))).toBe(true);
  });

  test('of an ordinary file has its size', async () => {
    await writeFile(join(work, 'file'), 'x'.repeat(100_000));
    const { size, content } = await read(join(work, 'file'));
    expect(size).toBe(100_000);
    expect(content.toString()).toBe('x'.repeat(100_000));
  });

  test.each([
    ['a file in /proc that cannot be read', '/proc/self/mem', 'permission_denied'],
    ['a link loop', 'loop', 'symlink_loop'],
    ['a file below a file', 'file/child', 'parent_not_directory'],
    ['a dangling link', 'dangling', 'file_not_found'],
  ])('of %s is refused', async (_case, name, code) => {
    await writeFile(join(work, 'file'), '');
    await symlink('loop', join(work, 'loop'));
    await symlink('missing', join(work, 'dangling'));
    const path = name.startsWith('/') ? name : join(work, name);
    await expect(read(path)).rejects.toMatchObject({ code });
  });
});

test('a command can start in a directory only', async () => {
  await writeFile(join(work, 'file'), '');
  await channel.checkDirectory(work, signal());
  for (const name of ['file', 'missing', 'file/child']) {
    const check = channel.checkDirectory(join(work, name), signal());
    await expect(check).rejects.toMatchObject({ code: 'cwd_not_found' });
  }
});
