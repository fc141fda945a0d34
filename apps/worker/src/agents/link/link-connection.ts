import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { AGENT_LINK_LINE_BYTES, type WorkerMessage } from '@svc/contract';
import {
  type Budget,
  type Charge,
  type TokenBucket,
  untilAborted,
} from '@svc/service-kit/concurrency';
import { readGuestMessage, type ValidGuestMessage } from './guest-messages.ts';
import { LineProtocolError, LineSplitter } from './line-splitter.ts';
import { BUFFER_BYTES, bufferCharge } from './link-budgets.ts';

/** A guest that leaves more than this unread loses the connection, in bytes. */
const MAX_UNREAD = 64 * 1024 * 1024;
/** The cost of a read, and that of handling a line, on top of their bytes. */
const READ_COST = 100;
const LINE_COST = 100;
/** Longest wait for the rest of a line, in milliseconds. */
const LINE_MS = 60_000;
const ROOM_POLL_MS = 20;
/** The number of unknown or malformed messages that a connection survives. */
const MAX_INVALID = 100;

type Answer<T extends ValidGuestMessage['type']> = Extract<ValidGuestMessage, { readonly type: T }>;

export interface LinkConnectionOptions {
  /** Limits how many bytes of the guest's are read; shared by all connections to the guest. */
  readonly readRate: TokenBucket;
  /** For what the links to all guests of the account hold, in bytes. */
  readonly held: Budget;
  /** The longest wait for the rest of a line. It does not count while the rate allows no read. */
  readonly lineMs?: number;
}

/** One TCP connection to the agent runtime: sends messages, and receives validated ones. */
export class LinkConnection {
  readonly #socket: Socket;
  readonly #splitter = new LineSplitter(AGENT_LINK_LINE_BYTES);
  readonly #chunks: AsyncIterator<Buffer>;
  readonly #readRate: TokenBucket;
  readonly #lineMs: number;
  /** What is left of the wait for the rest of the current line. */
  #leftMs: number;
  /** For what the guest has not read. */
  readonly #unsent: Charge;
  /** For what has been read of a line, and for lines whose messages are being handled. */
  readonly #lines: Charge;
  #unread: ValidGuestMessage[] = [];
  #invalid = 0;
  #pauseMs = 0;
  #isWaitingForRoom = false;
  #lackedRoom = false;
  #onFlushed: () => void = () => undefined;

  constructor(socket: Socket, { readRate, held, lineMs = LINE_MS }: LinkConnectionOptions) {
    this.#socket = socket;
    this.#readRate = readRate;
    this.#lineMs = lineMs;
    this.#leftMs = lineMs;
    this.#unsent = bufferCharge(held);
    this.#lines = bufferCharge(held);
    socket.setNoDelay(true);
    // The iterator reports the error to the next read; without a listener it would crash the process.
    socket.on('error', () => undefined);
    this.#chunks = socket[Symbol.asyncIterator]();
  }

  /** Whether the connection broke because its account had no room, which is no failure of the guest. */
  get lackedRoom(): boolean {
    return this.#lackedRoom;
  }

  /** Whether nothing waits to be sent, so that a message of any usual length needs no room of the account. */
  get isFlushed(): boolean {
    return this.#socket.writable && this.#socket.writableLength === 0;
  }

  /** Calls the listener, instead of an earlier one, each time that a message has been sent. */
  whenFlushed(listener: () => void): void {
    this.#onFlushed = listener;
  }

  /** Sends without waiting. Breaks the connection of a guest that has stopped reading, also when its account has no room. */
  send(message: WorkerMessage): void {
    if (!this.#socket.writable) return;
    // Bytes, so that the socket counts what it holds.
    this.#socket.write(Buffer.from(`${JSON.stringify(message)}\n`), () => {
      this.#hasRoomForUnsent();
      this.#onFlushed();
    });
    // A fresh runtime runs nothing of the customer's yet, so it reads its setup soon.
    const mayWait = this.#hasRoomForUnsent() || message.type === 'configure';
    const isUnread = this.#socket.writableLength > MAX_UNREAD;
    if (mayWait && !isUnread) return;
    this.#lackedRoom = !isUnread;
    this.#socket.destroy();
  }

  /**
   * Waits for an answer of this type. Drops the messages before it; {@link messages} yields those after it.
   * @throws LineProtocolError, the socket's error or the signal's reason
   */
  async expect<T extends 'configured' | 'rehearsed' | 'attached'>(
    type: T,
    signal: AbortSignal,
  ): Promise<Answer<T>> {
    for (;;) {
      const messages = await untilAborted(this.#read(), signal);
      if (messages === undefined) throw new LineProtocolError('the guest closed the connection');
      const at = messages.findIndex((message) => message.type === type);
      if (at === -1) continue;
      this.#unread = messages.slice(at + 1);
      return messages[at] as Answer<T>;
    }
  }

  /** Batches of messages, until the guest closes the connection. @throws LineProtocolError, or the socket's error */
  async *messages(): AsyncGenerator<readonly ValidGuestMessage[]> {
    const unread = this.#unread;
    this.#unread = [];
    if (unread.length > 0) yield unread;
    for (;;) {
      const messages = await this.#read();
      if (messages === undefined) return;
      if (messages.length > 0) yield messages;
    }
  }

  /** Breaks the connection. To be called once its messages have been handled. */
  close(): void {
    this.#socket.destroy();
    this.#hasRoomForUnsent();
    this.#charge(0);
  }

  async #read(): Promise<ValidGuestMessage[] | undefined> {
    this.#reserve(this.#splitter.partialBytes);
    if (this.#pauseMs > 0) await delay(this.#pauseMs);
    const { value, done } = await this.#nextChunk();
    if (done === true) return undefined;
    const bytes = this.#splitter.partialBytes + value.length;
    const lines = this.#splitter.push(value);
    if (lines.length > 0) {
      this.#leftMs = this.#lineMs;
      // Until the next read, by which their messages have been handled.
      this.#charge(bytes);
    }
    this.#pauseMs = this.#readRate.spend(value.length + READ_COST + lines.length * LINE_COST);
    const messages: ValidGuestMessage[] = [];
    for (const line of lines) {
      const message = readGuestMessage(line);
      if (message !== undefined) messages.push(message);
      else if (++this.#invalid > MAX_INVALID) {
        throw new LineProtocolError('the guest sent too many invalid messages');
      }
    }
    return messages;
  }

  async #nextChunk(): Promise<IteratorResult<Buffer>> {
    if (this.#splitter.partialBytes === 0) return await this.#chunks.next();
    const startedAt = performance.now();
    const timer = setTimeout(() => {
      this.#lackedRoom = this.#isWaitingForRoom;
      this.#socket.destroy(new LineProtocolError('a line took too long'));
    }, this.#leftMs);
    try {
      const next = await this.#chunks.next();
      if (next.done !== true)
        await this.#waitForRoom(this.#splitter.partialBytes + next.value.length);
      return next;
    } finally {
      clearTimeout(timer);
      this.#leftMs -= performance.now() - startedAt;
    }
  }

  /** Waits until the account has room for a line of so many bytes, as it would for the guest. */
  async #waitForRoom(bytes: number): Promise<void> {
    this.#isWaitingForRoom = true;
    while (!this.#reserve(bytes)) {
      await delay(ROOM_POLL_MS);
      if (this.#socket.destroyed) throw this.#socket.errored ?? new Error('the link was closed');
    }
    this.#isWaitingForRoom = false;
  }

  /**
   * Charges a line of which so many bytes have been read. A long one is charged as the longest: it never waits again, so
   * that lines which have begun do not wait for each other.
   */
  #reserve(bytes: number): boolean {
    const isCharged = this.#charge(bytes <= BUFFER_BYTES ? 0 : AGENT_LINK_LINE_BYTES);
    if (!isCharged) this.#charge(0);
    return isCharged;
  }

  #charge(bytes: number): boolean {
    return this.#lines.set(this.#socket.destroyed ? 0 : bytes);
  }

  #hasRoomForUnsent(): boolean {
    return this.#unsent.set(this.#socket.destroyed ? 0 : this.#socket.writableLength);
  }
}
