/** A program that runs inside a namespace of the simulated network. Its only argument is {@link PeerOptions} as JSON. */

import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { basename, join as joinPath } from 'node:path';
import { pipeline } from 'node:stream';
import { makeResponder, type Zone } from './dns-message.ts';

export interface PeerOptions {
  /** TCP ports that are open on every address. The answer names the source and the destination of the connection. */
  readonly tcpPorts?: readonly number[];
  /** Serves the files of a directory over HTTP on every address. */
  readonly files?: { readonly port: number; readonly directory: string };
  /** UDP ports that echo on one address. Datagrams to any other address of the namespace are recorded too. */
  readonly udp?: readonly { readonly address: string; readonly port: number }[];
  readonly dns?: { readonly address: string; readonly zone: Zone };
  /** Forwards connections to a Unix socket to a TCP port of the namespace's loopback interface. */
  readonly bridge?: { readonly socketPath: string; readonly port: number };
}

/** A request that the test sends to a peer. */
export type PeerRequest =
  | { readonly kind: 'arrivals' }
  | { readonly kind: 'connect'; readonly host: string; readonly port: number };

const CONNECT_MS = 5000;
const arrivals: string[] = [];

async function main(options: PeerOptions): Promise<void> {
  for (const port of options.tcpPorts ?? []) {
    await listening(createServer(greet), { port, host: '::' });
  }
  if (options.files !== undefined) await serveFiles(options.files);
  for (const { address, port } of options.udp ?? []) {
    await echoUdp('::', port);
    await echoUdp(address, port);
  }
  if (options.dns !== undefined) await serveDns(options.dns.address, options.dns.zone);
  if (options.bridge !== undefined) {
    const { socketPath, port } = options.bridge;
    await listening(
      createServer((socket) => join(socket, connect({ host: '127.0.0.1', port }))),
      { path: socketPath },
    );
  }
  process.on('message', (request: PeerRequest) => void answer(request));
  process.on('disconnect', () => process.exit());
  process.send?.('ready');
}

async function answer(request: PeerRequest): Promise<void> {
  process.send?.(request.kind === 'arrivals' ? arrivals : await tryConnect(request));
}

function greet(socket: Socket): void {
  const [from, to] = [plain(socket.remoteAddress), plain(socket.localAddress)];
  arrivals.push(`tcp ${from} > ${to}`);
  socket.on('error', () => undefined);
  socket.end(`${from} > ${to}\n`);
}

/**
 * Records and echoes datagrams. The echo of a socket on one address has that address as its source, which is not certain
 * with a wildcard socket.
 */
async function echoUdp(address: string, port: number): Promise<void> {
  const type = address.includes(':') ? 'udp6' : 'udp4';
  const socket = createSocket({ type, reuseAddr: true }, (message, from) => {
    arrivals.push(`udp ${plain(from.address)} > ${message}`);
    socket.send(message, from.port, from.address);
  });
  socket.bind(port, address);
  await once(socket, 'listening');
}

/** Serves a flat directory. A missing file is 404. */
async function serveFiles({ port, directory }: NonNullable<PeerOptions['files']>): Promise<void> {
  const server = createHttpServer((request, response) => {
    const name = basename(decodeURIComponent(request.url ?? ''));
    const file = createReadStream(joinPath(directory, name));
    file.once('error', () => response.writeHead(404).end());
    file.once('open', () => pipeline(file, response, () => undefined));
  });
  await listening(server, { port, host: '::' });
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

/** Strips the IPv6 prefix that a dual-stack socket adds to an IPv4 address. */
function plain(address = ''): string {
  return address.replace(/^::ffff:/, '');
}

await main(JSON.parse(process.argv[2] ?? '{}') as PeerOptions);
