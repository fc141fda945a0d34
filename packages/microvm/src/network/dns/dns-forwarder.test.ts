import { execFile } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { promisify } from 'node:util';
import { freePort } from '@svc/service-kit/testing';
import { type Answer, decode, encode, type Packet, type RecordType } from 'dns-packet';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { reply, type Script, startDnsServer, truncated } from '../../../test/network/dns-server.ts';
import { rcodeOf } from './dns-codes.ts';
import { DnsForwarder, type DnsForwarderOptions } from './dns-forwarder.ts';
import { FrameReader, frame, MAX_FRAMED_BYTES } from './tcp-frames.ts';
import { serveTcp } from './tcp-server.ts';
import type { Answerer } from './udp-server.ts';

const NAME = 'Some.Example.com';
const a = (data: string, name = NAME): Answer => ({ type: 'A', class: 'IN', name, ttl: 60, data });

/** A forwarder with the given upstream servers, whose only client is this test. */
async function forward(upstreams: readonly string[], options: Partial<DnsForwarderOptions> = {}) {
  const port = await freePort('127.0.0.1');
  const forwarder = await DnsForwarder.open({
    ...{ address: '127.0.0.1', port, rate: 1000, burst: 1000 },
    clientOf: () => 1,
    upstreams: () => upstreams,
    ...options,
  });
  return { port, [Symbol.asyncDispose]: () => forwarder.close(), forwarder };
}

function query(type: string, name = NAME, more: Partial<Packet> = {}): Buffer {
  const question = { type: type as RecordType, name, class: 'IN' } as const;
  return encode({ type: 'query', id: 77, flags: 0x100, questions: [question], ...more });
}

/** Sends a message by UDP and returns the answer, or undefined after `waitMs`. */
async function askUdp(port: number, message: Buffer, waitMs = 20_000) {
  const socket = createSocket('udp4');
  try {
    const answered = once(socket, 'message', { signal: AbortSignal.timeout(waitMs) });
    const send = () => socket.send(message, port, '127.0.0.1');
    send();
    // A busy machine may lose a datagram.
    const resend = setInterval(send, 1000);
    const [answer] = await answered.finally(() => clearInterval(resend));
    return decode(answer);
  } catch {
    return undefined;
  } finally {
    socket.close();
  }
}

async function askTcp(port: number, messages: Buffer[]) {
  const socket = connect(port, '127.0.0.1');
  const reader = new FrameReader(65_535);
  socket.write(Buffer.concat(messages.map(frame)));
  const answers: Packet[] = [];
  for await (const chunk of socket) {
    answers.push(...reader.read(chunk).map((message) => decode(message)));
    if (answers.length === messages.length) break;
  }
  return answers;
}

/** Connects to a TCP server that disconnects an idle client soon. `socket` is the server's end of the connection. */
async function connectToServer(answer: Answerer) {
  const server = await serveTcp('127.0.0.1', 0, answer, new AbortController().signal, 300);
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  client.on('error', () => undefined);
  const [socket]: Socket[] = await once(server, 'connection');
  if (socket === undefined) throw new Error('there is no connection');
  return {
    socket,
    client,
    async [Symbol.asyncDispose]() {
      client.destroy();
      await once(server.close(), 'close');
    },
  };
}

/** Runs a function every so many milliseconds, until the end of a block. */
function every(ms: number, run: () => void): Disposable {
  const timer = setInterval(run, ms);
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

/** An answer with this many MX records, whose owner and exchange are pointers to the name in the question. */
function compressedMx(question: Packet, records: number): Buffer {
  const head = encode(reply(question));
  head.writeUInt16BE(records, 6);
  const record = Buffer.from('c00c000f00010000003c00040001c00c', 'hex');
  return Buffer.concat([head, ...Array.from({ length: records }, () => record)]);
}

/** Sends a datagram to the given port of 127.0.0.1, as hexadecimal digits. Only a raw socket can send from port 0. */
const SEND_FROM_PORT_0 = `
import socket, struct, sys
port, data = int(sys.argv[1]), bytes.fromhex(sys.argv[2])
raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP)
raw.sendto(struct.pack('!HHHH', 0, port, 8 + len(data), 0) + data, ('127.0.0.1', 0))
`;

async function answerTo(type: string, script: Script, name = NAME) {
  await using server = await startDnsServer(script);
  await using forwarder = await forward([server.address]);
  const packet = await askUdp(forwarder.port, query(type, name));
  return { packet, asked: server.queries.length };
}

describe('an answer', () => {
  test('keeps the id, the case of the name and the requested records', async () => {
    const { packet } = await answerTo('A', (q) => reply(q, { answers: [a('8.8.8.8')] }));
    expect(packet).toMatchObject({ id: 77, flag_qr: true, flag_ra: true });
    expect(packet?.questions).toEqual([{ type: 'A', name: NAME, class: 'IN' }]);
    expect(packet?.answers).toMatchObject([{ type: 'A', data: '8.8.8.8', ttl: 60 }]);
  });

  test('contains no address that is not public and no record that was not requested', async () => {
    const { packet } = await answerTo('A', (q) =>
      reply(q, {
        answers: [
          { type: 'CNAME', class: 'IN', name: NAME, ttl: 5, data: 'alias.example.com' },
          ...['10.0.0.1', '169.254.169.254', '127.0.0.1', '100.64.0.1', '0.0.0.0', '1.1.1.1'].map(
            (address) => a(address, 'alias.example.com'),
          ),
          { type: 'AAAA', class: 'IN', name: NAME, ttl: 5, data: '::1' },
          { type: 'TXT', class: 'IN', name: NAME, ttl: 5, data: 'x' },
        ],
        authorities: [{ type: 'NS', class: 'IN', name: NAME, ttl: 5, data: 'ns.example.com' }],
        additionals: [a('192.168.0.1', 'ns.example.com')],
      }),
    );
    expect(packet?.answers?.map((record) => record.type)).toEqual(['CNAME', 'A']);
    expect(packet?.answers?.[1]).toMatchObject({ data: '1.1.1.1' });
    expect(packet?.authorities).toEqual([]);
    expect(packet?.additionals).toEqual([]);
  });

  test('for a name that does not exist includes the SOA record, for negative caching', async () => {
    const soa = { mname: 'ns.example.com', rname: 'host.example.com', minimum: 60 };
    const { packet } = await answerTo('A', (q) =>
      reply(q, {
        rcode: 3,
        authorities: [{ type: 'SOA', class: 'IN', name: 'example.com', ttl: 60, data: soa }],
      }),
    );
    expect(rcodeOf(packet?.flags)).toBe(3);
    expect(packet?.authorities).toMatchObject([{ type: 'SOA', data: { minimum: 60 } }]);
  });

  test.each(['MX', 'TXT', 'SRV', 'NS', 'PTR', 'CAA', 'CNAME'])(
    'of type %s is forwarded',
    async (type) => {
      const data: Record<string, unknown> = {
        MX: { preference: 1, exchange: 'mx.example.com' },
        TXT: ['hello'],
        SRV: { priority: 1, weight: 1, port: 443, target: 'a.example.com' },
        NS: 'ns.example.com',
        PTR: 'host.example.com',
        CAA: { flags: 0, tag: 'issue', value: 'ca.example.com' },
        CNAME: 'other.example.com',
      };
      const record = { type, class: 'IN', name: NAME, ttl: 5, data: data[type] } as Answer;
      const { packet } = await answerTo(type, (q) => reply(q, { answers: [record] }));
      expect(packet?.answers).toMatchObject([{ type }]);
    },
  );

  test('too long for UDP is fetched and served by TCP', async () => {
    const script: Script = (q, transport) =>
      transport === 'udp'
        ? truncated(q)
        : reply(q, { answers: Array.from({ length: 100 }, (_, n) => a(`8.8.4.${n}`)) });
    await using server = await startDnsServer(script);
    await using forwarder = await forward([server.address]);
    const first = await askUdp(forwarder.port, query('A'));
    expect(first).toMatchObject({ flag_tc: true, answers: [] });
    const [second] = await askTcp(forwarder.port, [query('A')]);
    expect(second?.answers).toHaveLength(100);
  });
});

describe('without an upstream server', () => {
  test.each([
    ['AAAA', NAME, 0],
    ['UNKNOWN_65', NAME, 0],
    ['UNKNOWN_64', NAME, 0],
    ['ANY', NAME, 4],
    ['AXFR', NAME, 4],
    ['NULL', NAME, 4],
    ['A', 'metadata.google.internal', 3],
    ['PTR', '1.0.0.10.in-addr.arpa', 3],
  ])('%s of %s is answered with code %i', async (type, name, rcode) => {
    const { packet, asked } = await answerTo(type, (q) => reply(q), name);
    expect({ rcode: rcodeOf(packet?.flags), answers: packet?.answers, asked }).toEqual({
      rcode,
      answers: [],
      asked: 0,
    });
  });

  test('other classes, other operations and several questions are rejected', async () => {
    await using server = await startDnsServer((q) => reply(q));
    await using forwarder = await forward([server.address]);
    const question = { type: 'TXT', name: 'version.bind' } as const;
    const codes: (number | undefined)[] = [];
    for (const more of [
      { questions: [{ ...question, class: 'CH' as const }] },
      { flags: 0x2900 },
      { questions: [question, question] },
    ]) {
      codes.push(rcodeOf((await askUdp(forwarder.port, query('TXT', NAME, more)))?.flags));
    }
    expect(codes).toEqual([5, 4, 1]);
    expect(server.queries).toEqual([]);
  });

  test('an ambiguous name is rejected', async () => {
    await using forwarder = await forward([]);
    const dotInLabel = query('A', 'evil-example.com');
    dotInLabel[12 + 5] = 0x2e;
    const foreignByte = query('A', 'evil-example.com');
    foreignByte[12 + 5] = 0xff;
    for (const message of [dotInLabel, foreignByte]) {
      expect(rcodeOf((await askUdp(forwarder.port, message))?.flags)).toBe(1);
    }
  });

  test('an unknown client gets no answer', async () => {
    await using server = await startDnsServer((q) => reply(q));
    await using forwarder = await forward([server.address], { clientOf: () => undefined });
    expect(await askUdp(forwarder.port, query('A'), 200)).toBeUndefined();
    expect(server.queries).toEqual([]);
  });
});

// Concurrent, because each test waits for the forwarder's deadlines.
describe.concurrent('a faulty upstream server', () => {
  test('that does not answer is followed by the next one', async ({ expect }) => {
    await using silent = await startDnsServer(() => undefined);
    await using good = await startDnsServer((q) => reply(q, { answers: [a('8.8.8.8')] }));
    await using forwarder = await forward([silent.address, good.address]);
    // Polls, because on a stalled machine even the good server may miss its deadline.
    const answers = async () => (await askUdp(forwarder.port, query('A')))?.answers;
    await expect.poll(answers).toHaveLength(1);
  });

  test('that fails makes the forwarder answer SERVFAIL before the guest’s timeout', async ({
    expect,
  }) => {
    await using failing = await startDnsServer((q) => reply(q, { rcode: 2 }));
    await using silent = await startDnsServer(() => undefined);
    const servers = [[failing.address], [silent.address], [], ['127.0.0.1:9']];
    const all: (number | undefined)[][] = [];
    const tookMs = async () => {
      const started = performance.now();
      const codes = servers.map(async (upstreams) => {
        await using forwarder = await forward(upstreams);
        return rcodeOf((await askUdp(forwarder.port, query('A')))?.flags);
      });
      all.push(await Promise.all(codes));
      return performance.now() - started;
    };
    // Polls, because a stall of the machine spoils a measurement. The answers must be right every time.
    await expect.poll(tookMs).toBeLessThan(6000);
    for (const codes of all) expect(codes).toEqual([2, 2, 2, 2]);
  });

  test('is ignored when its answer is invalid or to another question', async ({ expect }) => {
    const scripts: Script[] = [
      (q) => reply({ ...q, id: (q.id ?? 0) ^ 1 }, { answers: [a('6.6.6.6')] }),
      (q) =>
        reply({ ...q, questions: [{ type: 'A', name: 'x.com' }] }, { answers: [a('6.6.6.6')] }),
      (q) => ({ ...reply(q, { answers: [a('6.6.6.6')] }), type: 'query' }),
      () => Buffer.from('garbage'),
    ];
    const outcomes = await Promise.all(scripts.map((script) => answerTo('A', script)));
    expect(outcomes.map(({ packet }) => rcodeOf(packet?.flags))).toEqual([2, 2, 2, 2]);
  });
});

describe('hostile input', () => {
  test('random bytes and malformed queries do not stop the service', async () => {
    await using server = await startDnsServer((q) => reply(q, { answers: [a('8.8.8.8')] }));
    await using forwarder = await forward([server.address]);
    const socket = createSocket('udp4');
    const valid = query('A');
    const broken = fc.record({ at: fc.nat(valid.length - 1), byte: fc.nat(255), cut: fc.nat(40) });
    fc.assert(
      fc.property(fc.oneof(fc.uint8Array({ maxLength: 600 }), broken), (sample) => {
        const message = Buffer.from('at' in sample && !ArrayBuffer.isView(sample) ? valid : []);
        if (ArrayBuffer.isView(sample)) socket.send(sample, forwarder.port, '127.0.0.1');
        else {
          message[sample.at] = sample.byte;
          socket.send(
            message.subarray(0, message.length - sample.cut),
            forwarder.port,
            '127.0.0.1',
          );
        }
      }),
      { numRuns: 300 },
    );
    // Unanswered while too many of the other queries are in progress.
    const answers = async () => (await askUdp(forwarder.port, query('A')))?.answers;
    await expect.poll(answers).toHaveLength(1);
    socket.close();
  });

  test('an answer that grows beyond 64 KiB without compression becomes SERVFAIL', async () => {
    const name = Array.from({ length: 4 }, () => 'a'.repeat(62)).join('.');
    await using server = await startDnsServer((q, transport) =>
      transport === 'udp' ? truncated(q) : compressedMx(q, 128),
    );
    await using forwarder = await forward([server.address]);
    const [answer] = await askTcp(forwarder.port, [query('MX', name)]);
    expect(answer).toMatchObject({ id: 77, rcode: 'SERVFAIL', answers: [] });
    expect(await askUdp(forwarder.port, query('MX', name))).toMatchObject({ flag_tc: true });
  });

  test('a query from port 0, to which nothing can be sent, is ignored', async () => {
    await using server = await startDnsServer((q) => reply(q, { answers: [a('8.8.8.8')] }));
    await using forwarder = await forward([server.address]);
    await promisify(execFile)('python3', [
      ...['-c', SEND_FROM_PORT_0, `${forwarder.port}`, query('A').toString('hex')],
    ]);
    await expect.poll(() => server.queries).not.toHaveLength(0);
    expect((await askUdp(forwarder.port, query('A')))?.answers).toHaveLength(1);
  });

  test('a fault while answering ends only the TCP connection, or leaves the UDP query unanswered', async () => {
    const clientOf = () => {
      throw new Error('a fault');
    };
    await using forwarder = await forward([], { clientOf });
    expect(await askTcp(forwarder.port, [query('A')])).toEqual([]);
    expect(await askUdp(forwarder.port, query('A'), 200)).toBeUndefined();
  });

  test('closes a TCP connection that sends invalid data', async () => {
    await using forwarder = await forward([]);
    for (const bytes of [
      Buffer.from([0, 0]),
      Buffer.from([0xff, 0xff, 1]),
      frame(Buffer.from('x')),
    ]) {
      const socket = connect(forwarder.port, '127.0.0.1');
      socket.on('error', () => undefined);
      socket.write(bytes);
      await once(socket, 'close');
    }
  });

  test('limits the TCP connections of one client', async () => {
    await using server = await startDnsServer((q) => reply(q));
    await using forwarder = await forward([server.address]);
    const sockets = Array.from({ length: 8 }, () => connect(forwarder.port, '127.0.0.1'));
    await Promise.all(sockets.map((socket) => once(socket, 'connect')));
    const ninth = connect(forwarder.port, '127.0.0.1');
    ninth.on('error', () => undefined);
    await once(ninth, 'close');
    for (const socket of sockets) socket.destroy();
  });

  test('answers a client while the connections and queries of many others last as long as they can', async () => {
    const isSlow = (q: Packet) => q.questions?.[0]?.name.startsWith('slow');
    await using server = await startDnsServer((q) => (isSlow(q) ? undefined : reply(q)));
    const clientOf = (address: string) => Number(address.split('.')[3]);
    await using forwarder = await forward([server.address], { clientOf });
    const attackers = Array.from({ length: 60 }, (_, index) => `127.0.0.${index + 2}`);
    const sockets = attackers.flatMap((localAddress) =>
      Array.from({ length: 8 }, () => {
        const socket = connect({ port: forwarder.port, host: '127.0.0.1', localAddress });
        socket.on('error', () => undefined);
        return socket.resume();
      }),
    );
    for (const socket of sockets) socket.write(frame(query('A', 'slow.example.com')));
    // As many as the server may have.
    await expect.poll(() => sockets.filter(({ closed }) => closed).length).toBeGreaterThan(63);
    const [answer] = await askTcp(forwarder.port, [query('A')]);
    expect(answer).toMatchObject({ id: 77, rcode: 'NOERROR' });
    for (const socket of sockets) socket.destroy();
  });

  test('ends a connection on a query beyond the rate, after the answers within it, and answers later', async () => {
    await using server = await startDnsServer((q) => reply(q, { answers: [a('8.8.8.8')] }));
    await using forwarder = await forward([server.address], { rate: 1, burst: 3 });
    const answers = await askTcp(
      forwarder.port,
      Array.from({ length: 10 }, (_, n) => query('A', `n${n}.example.com`)),
    );
    expect(answers.length).toBeLessThan(10);
    expect(answers.filter(({ flags }) => rcodeOf(flags) !== 0)).toEqual([]);
    // Counted by name, because the forwarder repeats a query that is not answered quickly.
    const asked = new Set(server.queries.map(({ questions }) => questions?.[0]?.name));
    expect(asked.size).toBe(answers.length);
    const again = async () => (await askTcp(forwarder.port, [query('A')]))[0]?.answers;
    await expect.poll(again).toHaveLength(1);
  });

  test('counts malformed queries too, and leaves those beyond the rate unanswered by UDP', async () => {
    await using forwarder = await forward([], { rate: 0.001, burst: 3 });
    for (let sent = 0; sent < 3; sent += 1) await askTcp(forwarder.port, [Buffer.alloc(20)]);
    expect(await askUdp(forwarder.port, query('AAAA'), 200)).toBeUndefined();
  });

  test('answers many pipelined queries within the rate', async () => {
    await using forwarder = await forward([]);
    const queries = Array.from({ length: 500 }, () => query('AAAA'));
    expect(await askTcp(forwarder.port, queries)).toHaveLength(500);
  });

  test('keeps at most one answer for a client that does not read, and then disconnects it', async () => {
    await using connection = await connectToServer(async () => Buffer.alloc(MAX_FRAMED_BYTES));
    const { socket, client } = connection;
    let most = 0;
    using _watching = every(1, () => {
      most = Math.max(most, socket.writableLength);
    });
    client.pause().write(Buffer.concat(Array.from({ length: 2000 }, () => frame(query('A')))));
    // It goes on writing, so that only answers that are taken can keep it connected.
    using _writing = every(20, () => client.write(frame(query('A'))));
    await once(socket, 'close');
    expect(most).toBeLessThanOrEqual(2 + MAX_FRAMED_BYTES);
  });

  test('disconnects a client that sends bytes but completes no query', async () => {
    await using connection = await connectToServer(async (message) => message);
    const { socket, client } = connection;
    const bytes = frame(Buffer.alloc(1000));
    let sent = 0;
    using _writing = every(20, () => {
      client.write(bytes.subarray(sent, sent + 1));
      sent += 1;
    });
    await once(socket, 'close');
    expect(sent).toBeLessThan(1000);
  });
});

test('close() ends connections and queries in progress and frees the address', async () => {
  await using silent = await startDnsServer(() => undefined);
  const { forwarder, port } = await forward([silent.address]);
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => undefined);
  socket.write(frame(query('A')));
  await expect.poll(() => silent.queries.length).toBeGreaterThan(0);
  const closed = once(socket, 'close');
  await forwarder.close();
  await closed;
  await using _again = await forward([], { port });
});

test('rejects an address in use with dns_listen_failed', async () => {
  await using first = await forward([]);
  await expect(forward([], { port: first.port })).rejects.toMatchObject({
    code: 'dns_listen_failed',
  });
});
