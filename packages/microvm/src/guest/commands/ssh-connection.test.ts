import { once } from 'node:events';
import { type AddressInfo, createServer, type Server } from 'node:net';
import ssh2 from 'ssh2';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { SshConnection } from './ssh-connection.ts';

const hostKey = ssh2.utils.generateKeyPairSync('ed25519');
const userKey = ssh2.utils.generateKeyPairSync('ed25519');
let server: Server;
let connection: SshConnection;

beforeAll(async () => {
  const guest = new ssh2.Server({ hostKeys: [hostKey.private] }, (client) => {
    client.on('authentication', (attempt) => attempt.accept());
    client.on('session', (acceptSession) => {
      acceptSession().on('exec', (accept, _reject, { command }) => {
        // The whole answer in one packet, which the client reads at once.
        const stream = accept();
        stream.exit(Number(command));
        stream.end();
      });
    });
    client.on('error', () => client.end());
  });
  server = createServer({ noDelay: true }, (socket) => guest.injectSocket(socket));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const parsed = ssh2.utils.parseKey(hostKey.public);
  if (parsed instanceof Error) throw parsed;
  connection = new SshConnection({
    host: '127.0.0.1',
    port: (server.address() as AddressInfo).port,
    privateKey: userKey.private,
    hostKey: parsed.getPublicSSH(),
  });
});

afterAll(() => {
  connection.close();
  server.close();
});

test('returns the exit code of a command that ends immediately', async () => {
  const { signal } = new AbortController();
  for (let code = 0; code < 50; code += 1) {
    const { stream, ended } = await connection.exec(String(code), signal);
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
    privateKey: userKey.private,
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
    privateKey: userKey.private,
    hostKey: Buffer.alloc(0),
  };
  const unused = new SshConnection(options);
  const reason = new Error('too late');
  await expect(unused.connect(AbortSignal.abort(reason))).rejects.toBe(reason);
  unused.close();
  await new Promise((resolve) => silent.close(resolve));
  expect(connections).toBe(0);
});
