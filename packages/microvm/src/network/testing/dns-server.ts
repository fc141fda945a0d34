import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { decode, encode, type Packet, RECURSION_AVAILABLE, TRUNCATED_RESPONSE } from 'dns-packet';
import { FrameReader, frame } from '../dns/tcp-frames.ts';

/** What a scripted server does with a query; undefined leaves it unanswered. */
export type Script = (query: Packet, transport: 'udp' | 'tcp') => Packet | Buffer | undefined;

/** A DNS server on this machine's loopback that does as a test tells it, by UDP and TCP. */
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
  const udp = createSocket('udp4', (message, from) => {
    const reply = answer(message, 'udp');
    if (reply !== undefined) udp.send(reply, from.port, from.address);
  });
  udp.bind(0, '127.0.0.1');
  await once(udp, 'listening');
  const { port } = udp.address();
  const tcp = createServer((socket) => {
    const reader = new FrameReader(4096);
    socket.on('error', () => undefined);
    socket.on('data', (chunk) => {
      for (const message of reader.read(chunk)) {
        const reply = answer(message, 'tcp');
        if (reply !== undefined) socket.write(frame(reply));
      }
    });
  });
  tcp.listen(port, '127.0.0.1');
  await once(tcp, 'listening');
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

/** A well-formed answer to a query. */
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

/** The answer that sends a client to TCP. */
export function truncated(query: Packet): Packet {
  return { ...reply(query), flags: RECURSION_AVAILABLE | TRUNCATED_RESPONSE };
}
