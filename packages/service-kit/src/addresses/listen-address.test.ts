import { execFile } from 'node:child_process';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { listenAddress } from './listen-address.ts';

const run = promisify(execFile);
const MODULE = new URL('./listen-address.ts', import.meta.url).href;
/** Listens on a name, and reaches itself by it as every client does. */
const SERVER = `
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { listenAddress } from '${MODULE}';
const server = createServer((socket) => socket.end());
server.listen({ host: await listenAddress('localhost'), port: 0 });
await once(server, 'listening');
const { address, port } = server.address();
await once(connect({ host: 'localhost', port }), 'connect');
console.log(address);
process.exit();
`;

let namespace: string;
const ip = (...args: string[]) => run('ip', ['-n', namespace, ...args]);

/** A machine with IPv4 alone, except on its loopback interface, whose host file has both addresses of that. */
beforeEach(async () => {
  namespace = `svc-test-names-${process.pid}`;
  await mkdir(`/etc/netns/${namespace}`, { recursive: true });
  await writeFile(`/etc/netns/${namespace}/hosts`, '127.0.0.1 localhost\n::1 localhost\n');
  await run('ip', ['netns', 'add', namespace]);
  await ip('link', 'set', 'lo', 'up');
  await ip('link', 'add', 'outside', 'type', 'veth', 'peer', 'name', 'peer');
  await ip('link', 'set', 'outside', 'up', 'addrgenmode', 'none');
  await ip('address', 'add', '10.0.0.1/24', 'dev', 'outside');
});

afterEach(async () => {
  await run('ip', ['netns', 'del', namespace]);
  await rm(`/etc/netns/${namespace}`, { recursive: true });
});

async function addressInNamespace(): Promise<string> {
  const program = [process.execPath, '--input-type=module', '--eval', SERVER];
  const { stdout } = await run('ip', ['netns', 'exec', namespace, ...program]);
  return stdout.trim();
}

test('a server is reached by the name it listens on, with IPv6 on the loopback interface only', async () => {
  expect(await addressInNamespace()).toBe('127.0.0.1');
});

test('a server is reached by the name it listens on, without IPv6', async () => {
  await ip('address', 'del', '::1/128', 'dev', 'lo');
  expect(await addressInNamespace()).toBe('127.0.0.1');
});

test('a server is reached by the name it listens on, with IPv6', async () => {
  await ip('address', 'add', 'fd00::1/64', 'dev', 'outside', 'nodad');
  expect(await addressInNamespace()).toMatch(/^(::1|127\.0\.0\.1)$/);
});

test.each(['0.0.0.0', '::', '127.0.0.1', '10.0.0.7'])('%s stays as it is', async (address) => {
  expect(await listenAddress(address)).toBe(address);
});

test('a name without an address is an error', async () => {
  await expect(listenAddress('svc.invalid')).rejects.toMatchObject({ code: 'ENOTFOUND' });
});
