import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { createServer, type Server } from 'node:net';
import { decode, encode, type Packet, RECURSION_AVAILABLE, TRUNCATED_RESPONSE } from 'dns-packet';
import { FrameReader, frame } from '../../src/network/dns/tcp-frames.ts';

const TRIES = 20;

/** Computes a scripted server's answer to a query. Undefined leaves the query unanswered. */
export type Script = (query: Packet, transport: 'udp' | 'tcp') => Packet | Buffer | undefined;

/** A DNS server on the loopback interface that answers by UDP and TCP as scripted by a test. */
export interface ScriptedDnsServer extends AsyncDisposable {
  readonly address: string;
  readonly queries: Packet[];
}

export async function startDnsServer(script: Script): Promise<ScriptedDnsServer> {
  const queries: Packet[] = [];
  const answer = (message: Buffer, transport: 'udp' | 'tcp') => {
    const query = decode(message);
    queries.push(query);
    const reply = script(query, transport);
    return reply === undefined || Buffer.isBuffer(reply) ? reply : encode(reply);
  };
  const { udp, tcp, port } = await listenAtOnePort();
  udp.on('message', (message, from) => {
    const reply = answer(message, 'udp');
    if (reply !== undefined) udp.send(reply, from.port, from.address);
  });
  tcp.on('connection', (socket) => {
    const reader = new FrameReader(4096);
    socket.on('error', () => undefined);
    socket.on('data', (chunk) => {
      for (const message of reader.read(chunk)) {
        const reply = answer(message, 'tcp');
        if (reply !== undefined) socket.write(frame(reply));
      }
    });
  });
  return {
    address: `127.0.0.1:${port}`,
    queries,
    async [Symbol.asyncDispose]() {
      udp.close();
      tcp.close();
      await once(tcp, 'close');
    },
  };
}

/** Listens by UDP and TCP on one port of the loopback interface. Retries, since a port free for UDP may be in use for TCP. */
async function listenAtOnePort(): Promise<{ udp: Socket; tcp: Server; port: number }> {
  for (let tries = 1; ; tries += 1) {
    const udp = createSocket('udp4');
    udp.bind(0, '127.0.0.1');
    await once(udp, 'listening');
    const { port } = udp.address();
    const tcp = createServer();
    try {
      tcp.listen(port, '127.0.0.1');
      await once(tcp, 'listening');
      return { udp, tcp, port };
    } catch (error) {
      udp.close();
      if (tries === TRIES) throw error;
    }
  }
}

/** A valid answer to a query. */
export function reply(query: Packet, parts: Partial<Packet> & { rcode?: number } = {}): Packet {
  const { rcode = 0, ...records } = parts;
  return {
    type: 'response',
    id: query.id,
    flags: RECURSION_AVAILABLE | rcode,
    questions: query.questions,
    ...records,
  };
}

/** A truncated answer, after which the client retries over TCP. */
export function truncated(query: Packet): Packet {
  return { ...reply(query), flags: RECURSION_AVAILABLE | TRUNCATED_RESPONSE };
}
