import { createServer, type Server, type Socket } from 'node:net';
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { GuestTree } from './guest-tree.ts';
import type { TreeEntry, TreeWrite } from './tree-entry.ts';

const LIMIT = 1000;
const written: TreeWrite = {
  kind: 'file',
  path: Buffer.from('a'),
  mode: 0o644,
  mtimeNs: 1_600_000_000_123_000_000n,
  size: 1,
  offset: 0,
  content: [Buffer.from('x')],
};

const signal = () => AbortSignal.timeout(120_000);

describe('a hostile guest', () => {
  const servers: Server[] = [];
  const sockets = new Set<Socket>();
  afterEach(() => {
    for (const socket of sockets) socket.destroy();
    for (const server of servers.splice(0)) server.close();
  });

  async function guest(answer: Buffer): Promise<GuestTree> {
    const server = createServer((socket) => {
      sockets.add(socket);
      socket.on('error', () => socket.destroy());
      socket.once('data', () => socket.write(answer));
    });
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = server.address();
    if (address === null || typeof address === 'string') throw new Error('no port');
    return new GuestTree({
      address: { host: '127.0.0.1', port: address.port },
      token: '',
      root: '/tree',
    });
  }

  const line = (fields: object) => Buffer.from(`${JSON.stringify({ ok: true, ...fields })}\n`);
  const head = (fields: object = {}) =>
    line({
      generation: 'a'.repeat(32),
      complete: false,
      skipped: 0,
      records: 1,
      size: 1000,
      ...fields,
    });
  function record(path: string, { kind = 8, mode = 0o644, target = '' } = {}): Buffer {
    const bytes = Buffer.alloc(41);
    bytes.writeUInt8(kind, 0);
    bytes.writeUInt32BE(mode, 1);
    bytes.writeUInt16BE(path.length, 37);
    bytes.writeUInt16BE(target.length, 39);
    return Buffer.concat([bytes, Buffer.from(path), Buffer.from(target)]);
  }

  it.each([
    ['too many records', head({ records: 2 * LIMIT + 1 })],
    [
      'more entries than the tree may have',
      Buffer.concat([
        head({ records: LIMIT + 1, size: 100_000 }),
        ...Array.from({ length: LIMIT + 1 }, () => record('file')),
      ]),
    ],
    ['more bytes than it says', Buffer.concat([head({ size: 10 }), record('file')])],
    ['more bytes than fit', head({ size: 2 ** 40 })],
    ['another generation', head({ generation: 5 })],
    ['a path out of the tree', Buffer.concat([head(), record('a/../../b')])],
    ['an absolute path', Buffer.concat([head(), record('/etc')])],
    ['an empty path', Buffer.concat([head(), record('')])],
    ['a NUL', Buffer.concat([head(), record('a\0')])],
    ['a long name', Buffer.concat([head(), record('x'.repeat(256))])],
    ['a long path', Buffer.concat([head(), record('x/'.repeat(3000))])],
    ['another kind', Buffer.concat([head(), record('a', { kind: 6 })])],
    ['another mode', Buffer.concat([head(), record('a', { mode: 0o10000 })])],
    ['a target of a file', Buffer.concat([head(), record('a', { target: 'b' })])],
    ['a link without a target', Buffer.concat([head(), record('a', { kind: 10 })])],
    ['deletions from nothing', Buffer.concat([head({ complete: true }), record('a', { kind: 0 })])],
  ])('cannot list %s', async (_case, answer) => {
    const lying = await guest(answer);
    await expect(lying.list({ limit: LIMIT }, signal())).rejects.toMatchObject({
      code: 'internal',
    });
  });

  const listed: TreeEntry = {
    kind: 'file',
    path: Buffer.from('file'),
    mode: 0,
    mtimeNs: 0n,
    ctimeNs: 0n,
    size: 10,
    inode: 1n,
    target: Buffer.alloc(0),
  };
  const drain = async (source: AsyncIterable<unknown>) => {
    for await (const _ of source);
  };

  it.each([
    ['more than was asked for', [0, 0, 0, 11]],
    ['a larger hole than was asked for', [0x80, 0, 0, 11]],
    ['an unknown status', [0, 0, 0, 0, 9]],
  ])('cannot send %s', async (_case, bytes) => {
    const lying = await guest(Buffer.concat([line({}), Buffer.from(bytes)]));
    const reading = drain(lying.read([{ file: listed, offset: 0, length: 10 }], signal()));
    await expect(reading).rejects.toMatchObject({ code: 'internal' });
  });

  it('that sends nothing is left when the caller gives up', async () => {
    const silent = await guest(line({}));
    const stop = new AbortController();
    const reading = drain(silent.read([{ file: listed, offset: 0, length: 10 }], stop.signal));
    stop.abort(new Error('given up'));
    await expect(reading).rejects.toThrow('given up');
  });

  it('that has looked and does not send what it found is left after half a minute', async () => {
    const silent = await guest(head());
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    let hasLooked = false;
    const listing = silent.list({ limit: LIMIT }, new AbortController().signal, async (looked) => {
      const result = await looked;
      // The last wait before the records.
      hasLooked = typeof result === 'object' && result !== null && 'records' in result;
      return result;
    });
    const outcome = expect(listing).rejects.toMatchObject({ code: 'timeout' });
    while (!hasLooked) await new Promise((resolve) => setImmediate(resolve));
    vi.advanceTimersByTime(30_000);
    await outcome;
  });

  it('cannot refuse what it was not sent', async () => {
    const lying = await guest(line({ refused: [[7, 'disk_full']] }));
    await expect(lying.write([written], signal())).rejects.toMatchObject({
      code: 'internal',
    });
  });
});
