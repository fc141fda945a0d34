import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { AGENT_LINK_LINE_BYTES, type WorkerMessage } from '@svc/contract';
import { untilAborted } from '@svc/service-kit/concurrency';
import type { RateLimit } from '../../sessions/rate-limit.ts';
import { type CheckedMessage, readGuestMessage } from './guest-messages.ts';
import { LineProtocolError, LineSplitter } from './line-splitter.ts';

/** What the guest may leave unread of what the worker sends before it counts as gone, in bytes. */
const MAX_UNREAD = 64 * 1024 * 1024;
/** What the handling of a line costs beside its bytes. */
const LINE_COST = 100;
/** Lines of one connection that say nothing the protocol knows. */
const MAX_NONSENSE = 100;

type Of<T extends CheckedMessage['type']> = Extract<CheckedMessage, { readonly type: T }>;

/** One connection to the agent runtime: checked messages in, messages out. */
export class LinkConnection {
  readonly #socket: Socket;
  readonly #splitter = new LineSplitter(AGENT_LINK_LINE_BYTES);
  readonly #chunks: AsyncIterator<Buffer>;
  readonly #pace: RateLimit;
  #early: CheckedMessage[] = [];
  #nonsense = 0;
  #pauseMs = 0;

  /** `pace`: how fast the guest is read, in bytes; it outlives the connection. */
  constructor(socket: Socket, pace: RateLimit) {
    this.#socket = socket;
    this.#pace = pace;
    socket.setNoDelay(true);
    // Whoever reads learns of it; between two reads nobody does.
    socket.on('error', () => undefined);
    this.#chunks = socket[Symbol.asyncIterator]();
  }

  /** Sends without waiting. A guest that reads nothing loses the connection. */
  send(message: WorkerMessage): void {
    if (!this.#socket.writable) return;
    this.#socket.write(`${JSON.stringify(message)}\n`);
    if (this.#socket.writableLength > MAX_UNREAD) this.end();
  }

  /** Waits for an answer of this type; what comes before it is left out, what comes with it is kept. */
  async expect<T extends 'configured' | 'rehearsed' | 'attached'>(
    type: T,
    signal: AbortSignal,
  ): Promise<Of<T>> {
    for (;;) {
      const messages = await untilAborted(this.#next(), signal);
      if (messages === undefined) throw new LineProtocolError('the guest closed the line');
      const at = messages.findIndex((message) => message.type === type);
      if (at === -1) continue;
      this.#early = messages.slice(at + 1);
      return messages[at] as Of<T>;
    }
  }

  /** Messages as they come, several at once; ends when the guest closes. @throws LineProtocolError; what broke the connection */
  async *messages(): AsyncGenerator<readonly CheckedMessage[]> {
    const early = this.#early;
    this.#early = [];
    if (early.length > 0) yield early;
    for (;;) {
      const messages = await this.#next();
      if (messages === undefined) return;
      if (messages.length > 0) yield messages;
    }
  }

  /** Breaks the connection off. */
  end(): void {
    this.#socket.destroy();
  }

  async #next(): Promise<CheckedMessage[] | undefined> {
    if (this.#pauseMs > 0) await delay(this.#pauseMs);
    const { value, done } = await this.#chunks.next();
    if (done === true) return undefined;
    const lines = this.#splitter.push(value);
    this.#pauseMs = this.#pace.spend(value.length + lines.length * LINE_COST);
    const messages: CheckedMessage[] = [];
    for (const line of lines) {
      const message = readGuestMessage(line);
      if (message !== undefined) messages.push(message);
      else if (++this.#nonsense > MAX_NONSENSE) throw new LineProtocolError('nothing but nonsense');
    }
    return messages;
  }
}
