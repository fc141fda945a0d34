import { once } from 'node:events';
import type { Socket } from 'node:net';
import { PassThrough, type Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { withDeadline } from '@svc/service-kit/concurrency';
import { type MicrovmDownload, MicrovmError } from '../facade.ts';
import { type ChannelAddress, openChannelConnection, readAnswer } from './channel-connection.ts';
import { exactly } from './exactly.ts';
import type { GuestIdentity } from './identity.ts';
import { inPieces } from './in-pieces.ts';
import { KeptConnection } from './kept-connection.ts';

const REQUEST_MS = 15_000;
/** A transfer that moves nothing for so long is given up. */
const STALL_MS = 60_000;
/** Content is sent in pieces of about this size: each costs the guest some work of its own. */
const PIECE_BYTES = 1024 * 1024;
const END_OF_CONTENT = Buffer.alloc(4);

/**
 * Our end of the channel to the guest's own daemon: identity, clock, files, the end of commands. Each
 * request has a connection to itself, so that a long transfer holds up nothing; one is kept for the next.
 */
export class GuestChannel {
  readonly #address: ChannelAddress;
  readonly #kept = new KeptConnection();
  readonly #now: () => number;
  #token: string;

  /** `now`: the time that the guest is told, in milliseconds since the epoch. */
  constructor(address: ChannelAddress, token = '', now = Date.now) {
    this.#address = address;
    this.#token = token;
    this.#now = now;
  }

  /** Gives a restored guest its identity; until then it serves nothing else. */
  async identify(
    identity: GuestIdentity,
    authorizedKey: string,
    signal: AbortSignal,
  ): Promise<void> {
    await this.#call(
      {
        op: 'identify',
        hostname: identity.hostname,
        machine_id: identity.machineId,
        entropy: identity.entropy.toString('base64'),
        host_key: identity.hostKey.file.toString('base64'),
        authorized_key: `${authorizedKey}\n`,
        new_token: identity.token,
        time: this.#now() / 1000,
      },
      signal,
    );
    // The guest serves nobody else until this connection has ended.
    this.#kept.take()?.destroy();
    this.#token = identity.token;
  }

  async setClock(signal: AbortSignal): Promise<void> {
    await this.#call({ op: 'clock', time: this.#now() / 1000 }, signal);
  }

  async setName(hostname: string, signal: AbortSignal): Promise<void> {
    await this.#call({ op: 'name', hostname }, signal);
  }

  /** Lets the root file system fill the disk, after the disk has grown. */
  async growRoot(signal: AbortSignal): Promise<void> {
    await this.#call({ op: 'grow' }, signal);
  }

  /** Kills every process that carries a command's mark. */
  async kill(mark: number, signal: AbortSignal): Promise<void> {
    await this.#call({ op: 'kill', mark }, signal);
  }

  async ping(signal: AbortSignal): Promise<void> {
    await this.#call({ op: 'ping' }, signal);
  }

  /** Streams `source` into a file, which appears under its name when it is complete. */
  async upload(path: string, source: Readable, signal: AbortSignal): Promise<void> {
    const socket = await this.#open({ op: 'put', path }, signal);
    try {
      socket.setTimeout(STALL_MS, () => socket.destroy(stalled()));
      const answered = readAnswer(socket, signal);
      // Handled below; a guest that refuses early must not end us as an unhandled rejection.
      answered.catch(() => undefined);
      await sendChunks(socket, source, signal);
      await answered;
    } finally {
      socket.destroy();
    }
  }

  /** Opens a file for reading. The stream fails when the guest sends fewer bytes than it said. */
  async download(path: string, signal: AbortSignal): Promise<MicrovmDownload> {
    const socket = await this.#open({ op: 'get', path }, signal);
    try {
      const { size } = await readAnswer(socket, withDeadline(signal, REQUEST_MS));
      if (typeof size !== 'number' || !Number.isSafeInteger(size) || size < 0) {
        throw new MicrovmError('internal', 'the guest does not speak its protocol');
      }
      socket.setTimeout(STALL_MS, () => socket.destroy(stalled()));
      return { size, stream: contentOf(socket, size, signal) };
    } catch (error) {
      socket.destroy();
      throw error;
    }
  }

  /** Ends the connection that is kept. */
  close(): void {
    this.#kept.close();
  }

  async #call(request: Readonly<Record<string, unknown>>, signal: AbortSignal): Promise<void> {
    const deadline = withDeadline(signal, REQUEST_MS);
    try {
      const kept = this.#kept.take();
      if (kept !== undefined && (await this.#askKept(kept, request, deadline))) return;
      const socket = await openChannelConnection(this.#address, deadline);
      socket.on('error', () => socket.destroy());
      await this.#ask(socket, request, deadline);
    } catch (error) {
      if (!deadline.aborted || signal.aborted) throw error;
      throw new MicrovmError('timeout', 'the guest does not answer', { cause: error });
    }
  }

  /** False when the guest has dropped the connection: none of these requests does harm when repeated. */
  async #askKept(
    kept: Socket,
    request: Readonly<Record<string, unknown>>,
    signal: AbortSignal,
  ): Promise<boolean> {
    try {
      await this.#ask(kept, request, signal);
      return true;
    } catch (error) {
      if (error instanceof MicrovmError && error.code === 'guest_unreachable') return false;
      throw error;
    }
  }

  async #ask(
    socket: Socket,
    request: Readonly<Record<string, unknown>>,
    signal: AbortSignal,
  ): Promise<void> {
    try {
      this.#send(socket, request);
      await readAnswer(socket, signal);
    } catch (error) {
      socket.destroy();
      throw error;
    }
    this.#kept.keep(socket);
  }

  async #open(request: Readonly<Record<string, unknown>>, signal: AbortSignal): Promise<Socket> {
    const socket = await openChannelConnection(this.#address, withDeadline(signal, REQUEST_MS));
    socket.on('error', () => socket.destroy());
    this.#send(socket, request);
    return socket;
  }

  #send(socket: Socket, request: Readonly<Record<string, unknown>>): void {
    // Told when it is sent, not when the connection began: a busy guest takes long to accept one.
    const now = 'time' in request ? { time: this.#now() / 1000 } : {};
    socket.write(`${JSON.stringify({ ...request, ...now, token: this.#token })}\n`);
  }
}

async function sendChunks(socket: Socket, source: Readable, signal: AbortSignal): Promise<void> {
  for await (const chunk of inPieces(source, PIECE_BYTES)) {
    signal.throwIfAborted();
    const length = Buffer.alloc(4);
    length.writeUInt32BE(chunk.size);
    socket.cork();
    socket.write(length);
    let ready = true;
    for (const part of chunk.parts) ready = socket.write(part);
    socket.uncork();
    if (socket.destroyed) {
      throw new MicrovmError('guest_unreachable', 'the guest closed its channel');
    }
    if (!ready) await drained(socket, signal);
  }
  socket.write(END_OF_CONTENT);
}

async function drained(socket: Socket, signal: AbortSignal): Promise<void> {
  const settled = new AbortController();
  const either = AbortSignal.any([signal, settled.signal]);
  try {
    await Promise.race([
      once(socket, 'drain', { signal: either }),
      once(socket, 'close', { signal: either }),
    ]);
  } finally {
    settled.abort();
  }
}

function contentOf(socket: Socket, size: number, signal: AbortSignal): Readable {
  const output = new PassThrough({ highWaterMark: 1 << 20 });
  // The reader of `output` sees the failure; nobody else waits for the pipeline.
  pipeline(socket, exactly(size), output, { signal }).catch((error: unknown) => {
    output.destroy(error instanceof Error ? error : new Error(String(error)));
  });
  output.once('close', () => socket.destroy());
  return output;
}

function stalled(): MicrovmError {
  return new MicrovmError('timeout', 'the transfer stands still');
}
