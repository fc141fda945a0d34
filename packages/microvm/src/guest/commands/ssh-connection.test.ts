import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { type SshGuest, startSshGuest } from '../../../test/ssh-guest.ts';
import { SshConnection } from './ssh-connection.ts';

let guest: SshGuest;

beforeAll(async () => {
  guest = await startSshGuest({
    onExec: (channel, command) => {
      // The whole answer in one packet, which the client reads at once.
      channel.exit(Number(command));
      channel.end();
    },
  });
});

afterAll(() => guest.close());

test('returns the exit code of a command that ends immediately', async () => {
  const { signal } = new AbortController();
  for (let code = 0; code < 50; code += 1) {
    const { stream, ended } = await guest.connection.exec(String(code), signal);
    stream.resume();
    stream.stderr.resume();
    expect(await ended).toBe(code);
  }
});

test('close() aborts a pending connection attempt and leaves no connection', async () => {
  // The server must read, or the unread greeting of the client would keep the connection open forever.
  const silent = createServer((socket) => socket.resume()).listen(0, '127.0.0.1');
  await once(silent, 'listening');
  const { port } = silent.address() as AddressInfo;
  const options = {
    host: '127.0.0.1',
    port,
    privateKey: guest.privateKey,
    hostKey: Buffer.alloc(0),
  };
  const waiting = new SshConnection(options);
  const { signal } = new AbortController();
  const accepted = once(silent, 'connection');
  const attempt = expect(waiting.connect(signal)).rejects.toMatchObject({ code: 'vm_gone' });
  await accepted;
  waiting.close();
  await attempt;
  await new Promise((resolve) => silent.close(resolve));
});

test('an aborted signal prevents a connection attempt', async () => {
  let connections = 0;
  const silent = createServer(() => {
    connections += 1;
  }).listen(0, '127.0.0.1');
  await once(silent, 'listening');
  const { port } = silent.address() as AddressInfo;
  const options = {
    host: '127.0.0.1',
    port,
    privateKey: guest.privateKey,
    hostKey: Buffer.alloc(0),
  };
  const unused = new SshConnection(options);
  const reason = new Error('too late');
  await expect(unused.connect(AbortSignal.abort(reason))).rejects.toBe(reason);
  unused.close();
  await new Promise((resolve) => silent.close(resolve));
  expect(connections).toBe(0);
});

test('a guest that compresses is refused', async () => {
  const refused = Promise.withResolvers<void>();
  const compressing = await startSshGuest({
    onExec: (channel) => channel.end(),
    server: { algorithms: { compress: ['zlib'] } },
    debug: (text) => {
      if (text.includes('No matching C->S compression')) refused.resolve();
    },
  });
  onTestFinished(() => compressing.close());
  const caller = new AbortController();
  const reason = new Error('the caller is gone');
  const started = expect(compressing.connection.exec('true', caller.signal)).rejects.toBe(reason);
  await refused.promise;
  caller.abort(reason);
  await started;
});
