import type { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import type { TokenBucket } from '@svc/service-kit/concurrency';
import type { Client, ClientChannel } from 'ssh2';
import { addOutput, passOn, unreadBytes } from './unread-output.ts';

/** Bytes of a command's output that may be on their way or wait to be read. The window that `ssh2` opens a channel with. */
const WINDOW_BYTES = 2 * 1024 * 1024;
/** The guest is asked for at least this much more at a time, so that this takes few packets. */
const GRANT_BYTES = WINDOW_BYTES / 2;
/** Bytes that may wait for the guest to read them. Its window is 24 KiB a command, and a command line has at most 16 KiB. */
const MAX_UNSENT_BYTES = 4 * 1024 * 1024;
/** Channels that the guest has not closed yet. A sandbox runs up to 64 commands at a time. */
const MAX_CHANNELS = 512;
/** A guest that accepts only tiny packets would turn the input of a command into millions of them. */
const MIN_PACKET_BYTES = 1024;
/** The costs of handling a packet and of exchanging keys, on top of their bytes: about as much time as so many bytes take. */
const PACKET_COST = 8 * 1024;
const KEY_EXCHANGE_COST = 1024 * 1024;
/** The type of extended data that is standard error (RFC 4254, 5.2). */
const STDERR = 1;

/** One direction of a channel. */
interface Direction {
  readonly id: number;
  readonly state: 'open' | 'eof' | 'closing' | 'closed';
  window: number;
}

type Channel = ClientChannel & {
  readonly incoming: Direction;
  readonly outgoing: Direction;
  readonly _client: Client;
};

/** What handles a packet. The connection breaks when it throws. */
interface Handlers {
  CHANNEL_OPEN_CONFIRMATION(protocol: unknown, info: { readonly packetSize: number }): void;
  CHANNEL_DATA(protocol: unknown, id: number, data: Buffer): void;
  CHANNEL_EXTENDED_DATA(protocol: unknown, id: number, data: Buffer, type: number): void;
  GLOBAL_REQUEST(protocol: unknown, name: string, wantsReply: boolean): void;
  DISCONNECT(protocol: unknown): void;
}

/** What `ssh2` 1.17 does not declare. */
interface Internals {
  /** Undefined before the first attempt to connect. */
  readonly _sock: Socket | undefined;
  readonly _protocol: {
    /** `inSeqno`: the number of packets received. Undefined before the guest has said its version. */
    readonly _decipher: { readonly inSeqno: number } | undefined;
    readonly _handlers: Handlers;
    channelWindowAdjust(id: number, bytes: number): void;
    requestFailure(): void;
  };
  readonly _chanMgr: {
    readonly _count: number;
    /** A function while the guest has not opened the channel. */
    get(id: number): Channel | (() => void) | undefined;
  };
}

/**
 * Breaks the connection when the guest violates the protocol or leaves too much unread. `ssh2` trusts its server: it takes
 * output that it has not asked for, without a limit, and fails with an uncaught error when output follows its end. Call
 * this synchronously after `client.connect`.
 * @param readRate limits what is read, in bytes. A small packet costs more than its bytes
 */
export function holdToLimits(client: Client, readRate: Pick<TokenBucket, 'spend'>): void {
  const { _sock: socket, _protocol: protocol, _chanMgr: channels } = internals(client);
  const { _handlers: handlers } = protocol;
  const receive = (id: number, data: Buffer, output: (channel: Channel) => Readable) => {
    const channel = channels.get(id);
    if (typeof channel !== 'object' || isClosing(channel)) return;
    // Output of a command that is not accepted yet belongs to nobody.
    if (channel.subtype !== 'exec' || channel.incoming.state !== 'open') {
      throw new Error('the guest sent output of a command that does not run');
    }
    if (data.length > channel.incoming.window) {
      throw new Error('the guest sent more output than it was asked for');
    }
    channel.incoming.window -= data.length;
    addOutput(output(channel), data);
    askForOutput(channel);
  };
  const confirm = handlers.CHANNEL_OPEN_CONFIRMATION;
  handlers.CHANNEL_OPEN_CONFIRMATION = (self, info) => {
    if (info.packetSize < MIN_PACKET_BYTES) throw new Error('the guest accepts only tiny packets');
    confirm(self, info);
  };
  handlers.CHANNEL_DATA = (_self, id, data) => receive(id, data, (channel) => channel);
  handlers.CHANNEL_EXTENDED_DATA = (_self, id, data, type) => {
    if (type === STDERR) receive(id, data, (channel) => channel.stderr);
  };
  // `ssh2` would keep the host keys that a request announces until the guest has proved them.
  handlers.GLOBAL_REQUEST = (_self, _name, wantsReply) => {
    if (wantsReply) protocol.requestFailure();
  };
  // `ssh2` would leave the connection half open until the guest closes it.
  handlers.DISCONNECT = () => {
    throw new Error('the guest ended the connection');
  };
  if (socket === undefined) return;
  limitReads(client, socket, readRate);
  socket.on('data', () => {
    if (socket.writableLength > MAX_UNSENT_BYTES) {
      socket.destroy(new Error('the guest does not read what it is sent'));
    }
  });
}

/** Without this, a guest could keep this process busy with packets that need no window, for all sandboxes. */
function limitReads(client: Client, socket: Socket, rate: Pick<TokenBucket, 'spend'>): void {
  const { _protocol: protocol } = internals(client);
  let charged = 0;
  let resuming: NodeJS.Timeout | undefined;
  const charge = (cost: number) => {
    const pauseMs = rate.spend(cost);
    if (pauseMs === 0 || socket.isPaused()) return;
    socket.pause();
    resuming = setTimeout(() => socket.resume(), pauseMs);
  };
  // This runs before `ssh2` handles the data, so its packets are charged with the next.
  socket.on('data', (data: Buffer) => {
    const received = protocol._decipher?.inSeqno ?? 0;
    // An exchange of keys may set the number back to zero.
    const packets = received >= charged ? received - charged : received;
    charged = received;
    charge(data.length + packets * PACKET_COST);
  });
  client.on('handshake', () => charge(KEY_EXCHANGE_COST));
  socket.once('close', () => clearTimeout(resuming));
}

/**
 * Lets the reader have what waits, and the guest send as much output of a command as there is room for. Call this whenever
 * some of it has been read: unlike `ssh2`, this counts what waits in both outputs.
 */
export function askForOutput(stream: ClientChannel): void {
  const channel = stream as Channel;
  const { incoming, outgoing, stderr } = channel;
  passOn(channel);
  passOn(stderr);
  if (incoming.state !== 'open' || isClosing(channel)) return;
  const unread = unreadBytes(channel) + unreadBytes(stderr);
  const bytes = WINDOW_BYTES - unread - incoming.window;
  if (bytes < GRANT_BYTES) return;
  incoming.window += bytes;
  internals(channel._client)._protocol.channelWindowAdjust(outgoing.id, bytes);
}

/** Whether the guest has left so much unread or open that it gets no further command on this connection. */
export function isOverdue(client: Client): boolean {
  const { _sock: socket, _chanMgr: channels } = internals(client);
  return (socket?.writableLength ?? 0) > MAX_UNSENT_BYTES || channels._count >= MAX_CHANNELS;
}

/** Cuts the connection. `client.destroy()` would leave one that either side has ended to the guest. */
export function disconnect(client: Client): void {
  internals(client)._sock?.destroy();
}

/** Nothing may follow the close of a channel (RFC 4254, 5.3): the guest's SSH server ends the connection if it does. */
function isClosing({ outgoing }: Channel): boolean {
  return outgoing.state === 'closing' || outgoing.state === 'closed';
}

function internals(client: Client): Internals {
  return client as unknown as Internals;
}
