import { createSocket, type RemoteInfo } from 'node:dgram';
import { Resolver } from 'node:dns/promises';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { decode, encode, type Packet, RECURSION_AVAILABLE } from 'dns-packet';
import { serveMethods } from './serve-methods.ts';

/** The result of a connection attempt. */
export type Outcome = 'connected' | string;

const arrivals: string[] = [];
let zone: Record<string, Packet['answers']> = {};

/** A machine in a test network: a server and client that use the kernel's network stack. */
const methods = {
  /** Accepts TCP connections on a port, sends the client its own address, and records the connection. */
  async listenTcp(port: number, address = '0.0.0.0'): Promise<void> {
    const server = createServer((socket) => {
      arrivals.push(`tcp ${socket.remoteAddress} > ${socket.localAddress}:${socket.localPort}`);
      socket.on('error', () => undefined);
      socket.end(`${socket.remoteAddress}`);
    });
    server.listen(port, address);
    await once(server, 'listening');
  },
  /** Accepts TCP connections on a port and keeps them open. */
  async holdTcp(port: number): Promise<void> {
    const server = createServer((socket) => socket.on('error', () => undefined));
    server.listen(port, '0.0.0.0');
    await once(server, 'listening');
  },
  /** Connects and keeps the connection open. */
  async holdOpen(address: string, port: number): Promise<void> {
    const socket = connect({ host: address, port });
    await once(socket, 'connect', { signal: AbortSignal.timeout(10_000) });
    socket.on('error', () => undefined);
  },
  /** Echoes UDP datagrams and records them. */
  async listenUdp(port: number, address: string): Promise<void> {
    const socket = createSocket(address.includes(':') ? 'udp6' : 'udp4', (message, from) => {
      arrivals.push(`udp ${from.address} > ${address}:${port}`);
      socket.send(message, from.port, from.address);
    });
    socket.bind(port, address);
    await once(socket, 'listening');
  },
  /** Serves the records given as an authoritative DNS server would. */
  async serveDns(address: string, records: Record<string, Packet['answers']>): Promise<void> {
    zone = records;
    const socket = createSocket('udp4', (message, from) => answerDns(message, from));
    const answerDns = (message: Buffer, from: RemoteInfo) => {
      const { id = 0, questions = [] } = decode(message);
      const question = questions[0];
      const answers = zone[question?.name ?? '']?.filter((a) => a.type === question?.type);
      arrivals.push(`dns ${question?.type} ${question?.name}`);
      const flags = RECURSION_AVAILABLE | (answers ? 0 : 3);
      const reply = { type: 'response', id, flags, questions, answers: answers ?? [] } as const;
      socket.send(encode(reply), from.port, from.address);
    };
    socket.bind(53, address);
    await once(socket, 'listening');
  },
  /** Sends one empty datagram to each address. `from` sets the source address. */
  async sendUdp(addresses: readonly string[], port: number, from?: string): Promise<void> {
    const socket = createSocket({ type: addresses[0]?.includes(':') ? 'udp6' : 'udp4' });
    socket.bind(0, from);
    await once(socket, 'listening');
    for (const address of addresses) {
      const { promise, resolve } = Promise.withResolvers<void>();
      // An error from the sender's own kernel means that the address is not reachable.
      socket.send('', port, address, () => resolve());
      await promise;
    }
    socket.close();
  },
  /** Waits for an echo. All packets sent before it have then been delivered or dropped. */
  async echo(port: number, address: string): Promise<void> {
    const socket = createSocket('udp4');
    const answered = once(socket, 'message', { signal: AbortSignal.timeout(10_000) });
    const send = () => socket.send('echo', port, address);
    send();
    const resend = setInterval(send, 200);
    await answered.finally(() => {
      clearInterval(resend);
      socket.close();
    });
  },
  /** All connections and datagrams that the servers of this process have received, in order. */
  async arrivals(): Promise<string[]> {
    return arrivals;
  },
  /** Connects and returns `connected <data>`, or the error's code. */
  async tcp(address: string, port: number, timeoutMs = 10_000): Promise<Outcome> {
    const socket = connect({
      host: address,
      port,
      signal: AbortSignal.timeout(timeoutMs),
    });
    try {
      const [greeting] = await once(socket, 'data');
      return `connected ${greeting}`;
    } catch (error) {
      return error instanceof Error && 'code' in error ? String(error.code) : String(error);
    } finally {
      socket.destroy();
    }
  },
  /** Resolves a name with a server and returns the records, or the error's code. */
  async resolve(name: string, server: string, type: 'A' | 'AAAA' | 'TXT' = 'A'): Promise<unknown> {
    const resolver = new Resolver({ timeout: 5000, tries: 2 });
    resolver.setServers([server]);
    try {
      return await resolver.resolve(name, type);
    } catch (error) {
      return error instanceof Error && 'code' in error ? String(error.code) : String(error);
    }
  },
};

export type Peer = typeof methods;

serveMethods(methods);
