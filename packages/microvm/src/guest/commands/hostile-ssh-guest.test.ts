import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { TokenBucket } from '@svc/service-kit/concurrency';
import type ssh2 from 'ssh2';
import { expect, onTestFinished, test } from 'vitest';
import {
  type RawPeer,
  type SshGuestOptions,
  sendPacket,
  startSshGuest,
} from '../../../test/ssh-guest.ts';
import type { SshConnection } from './ssh-connection.ts';
import { askForOutput } from './ssh-limits.ts';

/** The type of extended data that is standard error. */
const STDERR = 1;
const MIB = 1024 * 1024;
const PACKET = Buffer.alloc(32 * 1024, 'x');
const NEVER = new AbortController().signal;

/** A guest that accepts every command, and whose peer is handed over when a command named `attack` is requested. */
async function startGuest(options: Partial<SshGuestOptions> = {}) {
  const attacking = Promise.withResolvers<RawPeer>();
  let latest: RawPeer | undefined;
  const guest = await startSshGuest({
    onExec: (channel, command) => {
      if (command === 'attack' && latest !== undefined) attacking.resolve(latest);
      else end(channel);
    },
    ...options,
    onRequest: (peer) => {
      latest = peer;
      options.onRequest?.(peer);
    },
  });
  onTestFinished(() => guest.close());
  return { connection: guest.connection, attacking: attacking.promise };
}

/** Starts a command whose output is discarded. Settles with its channel and its exit code. */
async function start(connection: SshConnection, command: string) {
  const { stream, ended } = await connection.exec(command, NEVER);
  stream.resume();
  stream.stderr.resume();
  return { stream, ended };
}

function end(channel: ssh2.ServerChannel): void {
  channel.exit(0);
  channel.end();
}

function stderrAfterEnd({ protocol, id }: RawPeer): void {
  protocol.channelEOF(id);
  protocol.channelExtData(id, PACKET, STDERR);
}

test('output after its end breaks the connection', async () => {
  const { connection, attacking } = await startGuest();
  const { ended } = await start(connection, 'attack');
  stderrAfterEnd(await attacking);
  await expect(ended).rejects.toMatchObject({ code: 'guest_unreachable' });
});

test('output after its end, with the acceptance of the command, breaks the connection', async () => {
  const peers: RawPeer[] = [];
  const { connection } = await startGuest({
    onRequest: (peer) => {
      peer.socket.cork();
      peers.push(peer);
    },
    onExec: () => {
      const [peer] = peers;
      if (peer === undefined) return;
      stderrAfterEnd(peer);
      peer.socket.uncork();
    },
  });
  const { ended } = await start(connection, 'attack');
  await expect(ended).rejects.toMatchObject({ code: 'guest_unreachable' });
});

test('output before the acceptance of the command breaks the connection', async () => {
  const { connection } = await startGuest({ onRequest: stderrAfterEnd });
  await expect(connection.exec('attack', NEVER)).rejects.toMatchObject({
    code: 'guest_unreachable',
  });
});

test('output after its end of a command that nobody waits for is harmless', async () => {
  const caller = new AbortController();
  const requested = Promise.withResolvers<RawPeer>();
  const accepted = Promise.withResolvers<ssh2.ServerChannel>();
  const { connection } = await startGuest({
    onRequest: (peer) => {
      // Holds back the acceptance.
      peer.socket.cork();
      requested.resolve(peer);
    },
    onExec: accepted.resolve,
  });
  const reason = new Error('the caller is gone');
  const started = expect(connection.exec('attack', caller.signal)).rejects.toBe(reason);
  const peer = await requested.promise;
  caller.abort(reason);
  await started;
  const channel = await accepted.promise;
  const closed = once(channel.resume(), 'close');
  stderrAfterEnd(peer);
  peer.socket.uncork();
  await closed;
});

test('more output than was asked for breaks the connection', async () => {
  const { connection, attacking } = await startGuest();
  const { stream, ended } = await connection.exec('attack', NEVER);
  const { socket, protocol, id } = await attacking;
  for (let sent = 0; sent < 32 * MIB && !socket.destroyed; sent += PACKET.length) {
    protocol.channelData(id, PACKET);
    if (!socket.writableNeedDrain) continue;
    await new Promise((resolve) => socket.once('drain', resolve).once('close', resolve));
  }
  expect(socket.destroyed).toBe(true);
  expect(stream.readableLength).toBeLessThanOrEqual(2 * MIB);
  stream.resume();
  stream.stderr.resume();
  await expect(ended).rejects.toMatchObject({ code: 'guest_unreachable' });
});

test('the output that waits to be read is bounded, whichever of both outputs it is', async () => {
  const { connection, attacking } = await startGuest();
  const { stream } = await connection.exec('attack', NEVER);
  stream.stderr.resume();
  const { protocol, id } = await attacking;
  const part = PACKET.subarray(0, 31 * 1024);
  // What a guest may send changes with what it has been granted. This one sends as much as is asked for.
  let window = 2 * MIB;
  const granted = grantedTo(await attacking, (bytes) => {
    window += bytes;
  });
  onTestFinished(granted);
  for (let round = 0; round < 5; round += 1) {
    while (window > part.length) {
      protocol.channelData(id, part);
      window -= part.length;
    }
    if (window > 0) {
      protocol.channelExtData(id, part.subarray(0, 1), STDERR);
      window -= 1;
    }
    // Everything that was sent before has arrived when this has ended, and what that granted, too.
    const { ended } = await start(connection, 'true');
    expect(await ended).toBe(0);
  }
  expect(stream.readableLength).toBeLessThanOrEqual(2 * MIB);
});

test.each(['stdout', 'stderr'] as const)(
  'tiny packets of %s wait to be read in few buffers',
  async (name) => {
    const { connection, attacking } = await startGuest();
    const { stream } = await connection.exec('attack', NEVER);
    const { protocol, id } = await attacking;
    const sent = Buffer.from('0123456789'.repeat(1000));
    for (const byte of sent) {
      const data = Buffer.of(byte);
      if (name === 'stdout') protocol.channelData(id, data);
      else protocol.channelExtData(id, data, STDERR);
    }
    await (await start(connection, 'true')).ended;
    const buffers: Buffer[] = [];
    const output = name === 'stdout' ? stream : stream.stderr;
    output.on('data', (data: Buffer) => {
      buffers.push(data);
      askForOutput(stream);
    });
    await expect.poll(() => Buffer.concat(buffers).length).toBe(sent.length);
    expect(Buffer.concat(buffers).equals(sent)).toBe(true);
    expect(buffers.length).toBeLessThan(10);
  },
);

test('output that waits when a command ends is delivered before the end', async () => {
  const { connection } = await startGuest({
    onExec: (channel) => {
      for (const part of ['one ', 'two ', 'three']) {
        channel.write(part);
        channel.stderr.write(part);
      }
      end(channel);
    },
  });
  const { stream, ended } = await connection.exec('attack', NEVER);
  // Both have ended when another command has, and nothing is read before that.
  const next = await connection.exec('true', NEVER);
  next.stream.resume();
  next.stream.stderr.resume();
  await next.ended;
  expect(await Promise.all([text(stream), text(stream.stderr)])).toEqual([
    'one two three',
    'one two three',
  ]);
  expect(await ended).toBe(0);
});

/** SSH_MSG_IGNORE without data. */
const IGNORE = Buffer.from([2, 0, 0, 0, 0]);

function flood({ protocol }: RawPeer, packets: number): void {
  for (let sent = 0; sent < packets; sent += 1) sendPacket(protocol, IGNORE);
}

test('every packet of the guest is charged, however small', async () => {
  const burst = 1e12;
  const readRate = new TokenBucket({ perSecond: 1, burst }, () => 0);
  const { connection, attacking } = await startGuest({ readRate });
  await start(connection, 'attack');
  flood(await attacking, 1000);
  // Everything that was sent before has arrived when these have ended.
  for (let more = 0; more < 2; more += 1) await (await start(connection, 'true')).ended;
  expect(readRate.take(burst - 1000 * 4096)).toBe(false);
});

test('key exchanges are charged', async () => {
  const costs: number[] = [];
  const readRate = {
    spend: (cost: number) => {
      costs.push(cost);
      return 0;
    },
  };
  const { connection, attacking } = await startGuest({ readRate });
  await start(connection, 'attack');
  const { protocol } = await attacking;
  const exchanges = () => costs.filter((cost) => cost >= MIB).length;
  expect(exchanges()).toBe(1);
  protocol.rekey();
  await expect.poll(exchanges).toBe(2);
});

test('a guest that has spent its rate is not read until it has paid', async () => {
  let pauseMs = 0;
  let reads = 0;
  const readRate = {
    spend: () => {
      reads += 1;
      return pauseMs;
    },
  };
  const { connection, attacking } = await startGuest({ readRate });
  await start(connection, 'attack');
  const peer = await attacking;
  pauseMs = 60_000;
  const before = reads;
  flood(peer, 1);
  await expect.poll(() => reads).toBe(before + 1);
  for (let turn = 0; turn < 100; turn += 1) {
    flood(peer, 1);
    await nextTurn();
  }
  expect(reads).toBe(before + 1);
});

test('a guest that has paid is read again', async () => {
  const { connection } = await startGuest({ readRate: { spend: () => 1 } });
  expect(await (await start(connection, 'true')).ended).toBe(0);
});

/** Calls back with what the client grants to all channels of a connection, until the result is called. */
function grantedTo({ protocol }: RawPeer, onGrant: (bytes: number) => void): () => void {
  const { _handlers: handlers } = protocol as unknown as {
    _handlers: { CHANNEL_WINDOW_ADJUST: (...args: [unknown, number, number]) => void };
  };
  const before = handlers.CHANNEL_WINDOW_ADJUST;
  handlers.CHANNEL_WINDOW_ADJUST = (...args) => {
    onGrant(args[2]);
    before(...args);
  };
  return () => {
    handlers.CHANNEL_WINDOW_ADJUST = before;
  };
}

/** A command whose guest reads nothing and has more to read than any honest one lets wait. */
async function startUnread() {
  const { connection, attacking } = await startGuest();
  const { stream, ended } = await start(connection, 'attack');
  const peer = await attacking;
  peer.socket.pause();
  peer.protocol.channelWindowAdjust(peer.id, 0x7fff_ffff);
  stream.end(Buffer.alloc(32 * MIB));
  return { connection, stream, ended, peer };
}

test('requests whose answers the guest does not read break the connection', async () => {
  const { ended, stream, peer } = await startUnread();
  await once(stream, 'finish');
  peer.protocol.ping();
  await expect(ended).rejects.toMatchObject({ code: 'guest_unreachable' });
});

test('a command for a guest that does not read breaks the connection', async () => {
  const { connection, ended, stream } = await startUnread();
  await once(stream, 'finish');
  const next = start(connection, 'true');
  await expect(ended).rejects.toMatchObject({ code: 'guest_unreachable' });
  expect(await (await next).ended).toBe(0);
});

test('commands that the guest never ends break the connection when there are too many', async () => {
  const { connection } = await startGuest({
    onExec: (channel) => {
      channel.resume();
    },
  });
  const { ended } = await start(connection, 'first');
  let hasEnded = false;
  ended.catch(() => {
    hasEnded = true;
  });
  for (let more = 0; more < 1000 && !hasEnded; more += 1) await start(connection, 'another');
  await expect(ended).rejects.toMatchObject({ code: 'guest_unreachable' });
});

test('packets too small for the input of a command are refused', async () => {
  let peer: RawPeer | undefined;
  const { connection } = await startGuest({
    onRequest: (requested) => {
      peer = requested;
    },
  });
  expect(await (await start(connection, 'true')).ended).toBe(0);
  if (peer === undefined) throw new Error('there was no request');
  const { protocol } = peer;
  const confirm = protocol.channelOpenConfirm.bind(protocol);
  protocol.channelOpenConfirm = (id, own, window) => confirm(id, own, window, 0);
  // The one retry has a new connection, whose server is honest.
  const { ended } = await start(connection, 'true');
  await expect.poll(() => peer?.protocol === protocol).toBe(false);
  expect(await ended).toBe(0);
});

test('host keys that the guest announces are neither kept nor verified', async () => {
  const received: string[] = [];
  const { connection } = await startGuest({
    server: { ident: 'OpenSSH_9.0' },
    debug: (text) => {
      const [, name] = /Inbound: (?:Received )?(GLOBAL_REQUEST|REQUEST_\w+)/.exec(text) ?? [];
      if (name !== undefined) received.push(name);
    },
    onRequest: ({ protocol }) => {
      const name = Buffer.from('hostkeys-00@openssh.com');
      sendPacket(
        protocol,
        Buffer.concat([Buffer.from([80, 0, 0, 0, name.length]), name, Buffer.from([1])]),
      );
    },
  });
  const { ended } = await start(connection, 'true');
  expect(await ended).toBe(0);
  await expect.poll(() => received).toEqual(['REQUEST_FAILURE']);
});

test('close() leaves no connection to a guest that has said goodbye', async () => {
  const { connection, attacking } = await startGuest();
  const { ended } = await start(connection, 'attack');
  const { socket, protocol } = await attacking;
  socket.pause();
  protocol.disconnect(11);
  connection.close();
  await expect(ended).rejects.toMatchObject({ code: 'guest_unreachable' });
  await expect
    .poll(() => {
      if (!socket.destroyed) socket.write('x');
      return socket.destroyed;
    })
    .toBe(true);
});
