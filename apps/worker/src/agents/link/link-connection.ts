import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { AGENT_LINK_LINE_BYTES, type WorkerMessage } from '@svc/contract';
import { type TokenBucket, untilAborted } from '@svc/service-kit/concurrency';
import { readGuestMessage, type ValidGuestMessage } from './guest-messages.ts';
import { LineProtocolError, LineSplitter } from './line-splitter.ts';

/** A guest that leaves more than this unread loses the connection, in bytes. */
const MAX_UNREAD = 64 * 1024 * 1024;
/** The cost of handling a line, on top of its bytes. */
const LINE_COST = 100;
/** The number of unknown or malformed messages that a connection survives. */
const MAX_INVALID = 100;

type Answer<T extends ValidGuestMessage['type']> = Extract<ValidGuestMessage, { readonly type: T }>;

/** One TCP connection to the agent runtime: sends messages, and receives validated ones. */
export class LinkConnection {
  readonly #socket: Socket;
  readonly #splitter = new LineSplitter(AGENT_LINK_LINE_BYTES);
  readonly #chunks: AsyncIterator<Buffer>;
  readonly #readRate: TokenBucket;
  #unread: ValidGuestMessage[] = [];
  #invalid = 0;
  #pauseMs = 0;

  /** `readRate`: limits how many bytes of the guest's are read; shared by all connections to the guest. */
  constructor(socket: Socket, readRate: TokenBucket) {
    this.#socket = socket;
    this.#readRate = readRate;
    socket.setNoDelay(true);
    // The iterator reports the error to the next read; without a listener it would crash the process.
    socket.on('error', () => undefined);
    this.#chunks = socket[Symbol.asyncIterator]();
  }

  /** Sends without waiting. Breaks the connection of a guest that has stopped reading. */
  send(message: WorkerMessage): void {
    if (!this.#socket.writable) return;
    this.#socket.write(`${JSON.stringify(message)}\n`);
    if (this.#socket.writableLength > MAX_UNREAD) this.close();
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

  /** Breaks the connection. */
  close(): void {
    this.#socket.destroy();
  }

  async #read(): Promise<ValidGuestMessage[] | undefined> {
    if (this.#pauseMs > 0) await delay(this.#pauseMs);
    const { value, done } = await this.#chunks.next();
    if (done === true) return undefined;
    const lines = this.#splitter.push(value);
    this.#pauseMs = this.#readRate.spend(value.length + lines.length * LINE_COST);
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
}
