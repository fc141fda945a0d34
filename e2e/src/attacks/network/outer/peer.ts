/** A machine of the outer network: run inside its namespace by {@link startPeer}, told what to do by one JSON argument. */

import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { makeResponder, type Zone } from './dns-message.ts';

export interface PeerOptions {
  /** TCP ports answered on every address: the answer is who called whom. */
  readonly tcpPorts?: readonly number[];
  /** UDP ports echoed; what comes to any other address of the machine is noted all the same. */
  readonly udp?: readonly { readonly address: string; readonly port: number }[];
  readonly dns?: { readonly address: string; readonly zone: Zone };
  /** Hands what comes on a Unix socket on to a TCP port of this machine's loopback. */
  readonly bridge?: { readonly socketPath: string; readonly port: number };
}

/** A question of the test to a peer. */
export type PeerQuestion =
  | { readonly ask: 'arrivals' }
  | { readonly ask: 'connect'; readonly host: string; readonly port: number };

const CONNECT_MS = 5000;
const arrivals: string[] = [];

async function main(options: PeerOptions): Promise<void> {
  for (const port of options.tcpPorts ?? []) {
    await listening(createServer(greet), { port, host: '::' });
  }
  for (const { address, port } of options.udp ?? []) {
    await noteUdp('::', port);
    await noteUdp(address, port);
  }
  if (options.dns !== undefined) await serveDns(options.dns.address, options.dns.zone);
  if (options.bridge !== undefined) {
    const { socketPath, port } = options.bridge;
    await listening(
      createServer((socket) => join(socket, connect({ host: '127.0.0.1', port }))),
      { path: socketPath },
    );
  }
  process.on('message', (question: PeerQuestion) => void answer(question));
  process.on('disconnect', () => process.exit());
  process.send?.('ready');
}

async function answer(question: PeerQuestion): Promise<void> {
  process.send?.(question.ask === 'arrivals' ? arrivals : await tryConnect(question));
}

function greet(socket: Socket): void {
  const [from, to] = [plain(socket.remoteAddress), plain(socket.localAddress)];
  arrivals.push(`tcp ${from} > ${to}`);
  socket.on('error', () => undefined);
  socket.end(`${from} > ${to}\n`);
}

/** On one address the answer comes from where the question went; from the wildcard it might not. */
async function noteUdp(address: string, port: number): Promise<void> {
  const type = address.includes(':') ? 'udp6' : 'udp4';
  const socket = createSocket({ type, reuseAddr: true }, (message, from) => {
    arrivals.push(`udp ${plain(from.address)} > ${message}`);
    socket.send(message, from.port, from.address);
  });
  socket.bind(port, address);
  await once(socket, 'listening');
}

async function serveDns(address: string, zone: Zone): Promise<void> {
  const respond = makeResponder(zone);
  const socket = createSocket(address.includes(':') ? 'udp6' : 'udp4', (query, from) => {
    socket.send(respond(query), from.port, from.address);
  });
  socket.bind(53, address);
  await once(socket, 'listening');
}

async function tryConnect({ host, port }: { host: string; port: number }): Promise<string> {
  const socket = connect({ host, port });
  try {
    await once(socket, 'connect', { signal: AbortSignal.timeout(CONNECT_MS) });
    return 'connected';
  } catch (error) {
    return String(error);
  } finally {
    socket.destroy();
  }
}

async function listening(server: Server, at: object): Promise<void> {
  server.listen(at);
  await once(server, 'listening');
}

function join(near: Socket, far: Socket): void {
  for (const [one, other] of [
    [near, far],
    [far, near],
  ] as const) {
    one.on('error', () => other.destroy());
    one.on('close', () => other.destroy());
    one.pipe(other);
  }
}

/** An IPv4 address without the IPv6 form that a socket for both gives it. */
function plain(address = ''): string {
  return address.replace(/^::ffff:/, '');
}

await main(JSON.parse(process.argv[2] ?? '{}') as PeerOptions);
