import type { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import { withDeadline } from '@svc/service-kit/concurrency';
import type { MicrovmDownload } from '../../microvm.ts';
import { MicrovmError } from '../../microvm-error.ts';
import { connectToGuest, type GuestAddress } from '../connect-to-guest.ts';
import type { GuestIdentity } from '../identity.ts';
import { withTimeout } from '../with-timeout.ts';
import { KeptConnection } from './kept-connection.ts';
import { abandonWhenStalled, openRequest, REQUEST_MS } from './open-request.ts';
import { protocolViolation, readAnswer } from './read-answer.ts';
import { receiveContent } from './receive-content.ts';
import { sendContent } from './send-content.ts';

/**
 * For the first request to a restored guest: it has everything to read from the snapshot, and on a machine that restores
 * many guests at once it waits for a processor, too.
 */
const IDENTIFY_MS = 60_000;

/**
 * The client of the daemon in a guest: identity, clock, files, ending commands. Each request has a connection to
 * itself, so that a long transfer delays no other request. One idle connection is kept for the next request.
 */
export class GuestChannel {
  readonly #address: GuestAddress;
  readonly #kept = new KeptConnection();
  readonly #now: () => number;
  #token: string;

  /** @param now the time to set in the guest, in milliseconds since the epoch */
  constructor(address: GuestAddress, token = '', now = Date.now) {
    this.#address = address;
    this.#token = token;
    this.#now = now;
  }

  /** Gives a restored guest its identity. Until then the guest accepts no other request. */
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
      IDENTIFY_MS,
    );
    // The guest accepts no other connection until this one has ended.
    this.#kept.take()?.destroy();
    this.#token = identity.token;
  }

  async setClock(signal: AbortSignal): Promise<void> {
    await this.#call({ op: 'clock', time: this.#now() / 1000 }, signal);
  }

  async setName(hostname: string, signal: AbortSignal): Promise<void> {
    await this.#call({ op: 'name', hostname }, signal);
  }

  /** Extends the root file system to the size of the disk, after the disk has grown. */
  async growRoot(signal: AbortSignal): Promise<void> {
    await this.#call({ op: 'grow' }, signal);
  }

  /** Kills every process that has a command's mark. */
  async kill(mark: number, signal: AbortSignal): Promise<void> {
    await this.#call({ op: 'kill', mark }, signal);
  }

  async ping(signal: AbortSignal): Promise<void> {
    await this.#call({ op: 'ping' }, signal);
  }

  /** Checks that a command can start in this directory. @throws MicrovmError `cwd_not_found` */
  async checkDirectory(path: string, signal: AbortSignal): Promise<void> {
    try {
      await this.#call({ op: 'directory', path }, signal);
    } catch (error) {
      // A VM may be older than this worker. Its guest does not know the request, and its shell reports the directory.
      if (!(error instanceof MicrovmError) || error.code !== 'internal') throw error;
    }
  }

  /** Streams `source` into a file. The file appears under its name when it is complete. */
  async upload(path: string, source: Readable, signal: AbortSignal): Promise<void> {
    const socket = await this.#open({ op: 'put', path }, signal);
    try {
      abandonWhenStalled(socket);
      const answered = readAnswer(socket, signal);
      // Awaited below. A guest that refuses early must not cause an unhandled rejection.
      answered.catch(() => undefined);
      await sendContent(socket, source, signal);
      await answered;
    } finally {
      socket.destroy();
    }
  }

  /** Opens a file for reading. The stream fails when the guest closes the connection before the end of the file. */
  async download(path: string, signal: AbortSignal): Promise<MicrovmDownload> {
    const socket = await this.#open({ op: 'get', path }, signal);
    try {
      const { size } = await readAnswer(socket, withDeadline(signal, REQUEST_MS));
      if (size !== undefined && !isSize(size)) throw protocolViolation();
      const stream = receiveContent(socket, size, signal);
      abandonWhenStalled(socket, () => stream.readableLength > 0);
      return { size, stream };
    } catch (error) {
      socket.destroy();
      throw error;
    }
  }

  /** Closes the idle connection. */
  close(): void {
    this.#kept.close();
  }

  async #call(
    request: Readonly<Record<string, unknown>>,
    signal: AbortSignal,
    timeoutMs = REQUEST_MS,
  ): Promise<void> {
    await withTimeout(timeoutMs, signal, async (until) => {
      const kept = this.#kept.take();
      if (kept !== undefined && (await this.#askKept(kept, request, until))) return;
      const socket = await connectToGuest(this.#address, until);
      socket.on('error', () => socket.destroy());
      await this.#ask(socket, request, until);
    });
  }

  /** False when the guest has dropped the connection. The request may be sent again: no request does harm twice. */
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

  #open(request: Readonly<Record<string, unknown>>, signal: AbortSignal): Promise<Socket> {
    return openRequest(this.#address, { ...request, token: this.#token }, signal);
  }

  #send(socket: Socket, request: Readonly<Record<string, unknown>>): void {
    // The time of sending, not of connecting: a busy guest takes long to accept a connection.
    const now = 'time' in request ? { time: this.#now() / 1000 } : {};
    socket.write(`${JSON.stringify({ ...request, ...now, token: this.#token })}\n`);
  }
}

function isSize(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}
