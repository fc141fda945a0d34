import type { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import { sleep, withDeadline } from '@svc/service-kit/concurrency';
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
 * The guest sets its clock at some point between the request and the answer, so the clock is late by at most this. A
 * slower exchange is repeated.
 */
const CLOCK_ERROR_MS = 500;
const CLOCK_ATTEMPTS = 3;

/** Between two looks at the disk of a guest that has not seen yet that its disk has grown. */
const GROW_POLL_MS = 20;
/** For the kernel of the guest to see it. */
const GROW_MS = 60_000;

interface Exchange {
  readonly answer: Readonly<Record<string, unknown>>;
  /** From the sending of the request to the answer. */
  readonly durationMs: number;
}

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
    const { durationMs } = await this.#call(
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
    if (durationMs > CLOCK_ERROR_MS) await this.setClock(signal);
  }

  /** Sets the guest's clock to within half a second, unless each of three attempts takes the guest longer than that. */
  async setClock(signal: AbortSignal): Promise<void> {
    for (let attempt = 0; attempt < CLOCK_ATTEMPTS; attempt += 1) {
      const { durationMs } = await this.#call({ op: 'clock', time: this.#now() / 1000 }, signal);
      if (durationMs <= CLOCK_ERROR_MS) return;
    }
  }

  async setName(hostname: string, signal: AbortSignal): Promise<void> {
    await this.#call({ op: 'name', hostname }, signal);
  }

  /**
   * Extends the root file system to the size of the disk, after the disk has grown to `bytes`. The kernel of the guest
   * sees the new size some time after the VMM has set it, so the request is repeated until then.
   *
   * @throws MicrovmError `timeout` when the guest has not seen the new size after a minute
   */
  async growRoot(bytes: number, signal: AbortSignal): Promise<void> {
    await withTimeout(GROW_MS, signal, async (until) => {
      for (;;) {
        const { answer } = await this.#call({ op: 'grow' }, until);
        if (Number(answer.size) >= bytes) return;
        await sleep(GROW_POLL_MS, until);
      }
    });
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
  ): Promise<Exchange> {
    return withTimeout(timeoutMs, signal, async (until) => {
      const kept = this.#kept.take();
      const exchange = kept && (await this.#askKept(kept, request, until));
      if (exchange !== undefined) return exchange;
      const socket = await connectToGuest(this.#address, until);
      socket.on('error', () => socket.destroy());
      return this.#ask(socket, request, until);
    });
  }

  /**
   * Undefined when the guest has dropped the connection. The request may be sent again: no request does harm twice.
   */
  async #askKept(
    kept: Socket,
    request: Readonly<Record<string, unknown>>,
    signal: AbortSignal,
  ): Promise<Exchange | undefined> {
    try {
      return await this.#ask(kept, request, signal);
    } catch (error) {
      if (error instanceof MicrovmError && error.code === 'guest_unreachable') return undefined;
      throw error;
    }
  }

  async #ask(
    socket: Socket,
    request: Readonly<Record<string, unknown>>,
    signal: AbortSignal,
  ): Promise<Exchange> {
    const sentAt = performance.now();
    try {
      this.#send(socket, request);
      const answer = await readAnswer(socket, signal);
      this.#kept.keep(socket);
      return { answer, durationMs: performance.now() - sentAt };
    } catch (error) {
      socket.destroy();
      throw error;
    }
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
