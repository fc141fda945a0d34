import type { Socket } from 'node:net';
import type { AgentSetup, WorkerMessage } from '@svc/contract';
import { backoffMs, sleep, withDeadline } from '@svc/service-kit/concurrency';
import { RateLimit } from '../../sessions/rate-limit.ts';
import type { AgentServices } from '../../sessions/services.ts';
import type { NumberedMessage } from './guest-messages.ts';
import { LinkConnection } from './link-connection.ts';
import type { ForwardedFrame, Outbox } from './outbox.ts';

export interface AgentLinkOptions {
  readonly dial: (signal: AbortSignal) => Promise<Socket>;
  readonly token: string;
  /** The highest message of the guest's that has been dealt with. */
  readonly lastN: number;
  /** Where clients' frames wait; undefined for an agent that has no clients. */
  readonly outbox: Outbox | undefined;
  readonly services: Pick<AgentServices, 'times' | 'metrics' | 'logger'>;
  /**
   * Deals with messages in order; nothing more is read until it has settled. Calls `done(n)` for each that needs
   * not come again. A rejection breaks the connection, and what is not done comes again.
   */
  readonly onMessages: (
    messages: readonly NumberedMessage[],
    done: (n: number) => void,
  ) => Promise<void>;
  /** Whether the guest can answer now: time in which it cannot does not count as silence. */
  readonly isAwake: () => boolean;
  /** Called once when the guest could not be reached for too long, or speaks nonsense only. */
  readonly onLost: () => void;
}

const MIB = 1024 * 1024;
/** How fast a guest is read, so that one that never stops leaves room for the others. */
const READ_RATE = { perSecond: 16 * MIB, burst: 64 * MIB };

/**
 * The line to the agent runtime in a guest, over as many connections as it takes. What the guest sends is
 * handed on once, in order; what clients send arrives once, in order.
 */
export class AgentLink {
  readonly #options: AgentLinkOptions;
  readonly #closed = new AbortController();
  #conversation: LinkConnection | undefined;
  #running: Promise<void> = Promise.resolve();
  #lastN: number;
  /** Messages dealt with since the last failure: a line that gets on is no hopeless one. */
  #progress = false;
  #env: Readonly<Record<string, string>> | undefined;
  #saving = false;
  readonly #pace = new RateLimit(READ_RATE);

  constructor(options: AgentLinkOptions) {
    this.#options = options;
    this.#lastN = options.lastN;
  }

  /**
   * Configures a fresh runtime and keeps the line up from then on.
   * @throws MicrovmError, or the signal's reason, when the runtime does not get ready
   */
  async configure(setup: AgentSetup, signal: AbortSignal): Promise<void> {
    const bounded = AbortSignal.any([signal, this.#closed.signal]);
    const conversation = await this.#open(bounded);
    try {
      conversation.send({ type: 'configure', token: this.#options.token, setup });
      await conversation.expect('configured', bounded);
    } catch (error) {
      conversation.end();
      throw error;
    }
    this.#running = this.#run(conversation);
  }

  /** Goes on with a runtime that was configured before; settles at once. */
  attach(): void {
    this.#running = this.#run(undefined);
  }

  /** Passes a client's frame on, now or when the line is up again; false when too many wait. */
  async forward(frame: ForwardedFrame): Promise<boolean> {
    const entry = await this.#options.outbox?.add(frame);
    if (entry === undefined) return false;
    this.#conversation?.send({ type: 'client', ...entry });
    return true;
  }

  /** Gives the runtime other values for processes that start from now on. */
  setEnv(env: Readonly<Record<string, string>>): void {
    this.#env = env;
    this.#conversation?.send({ type: 'env', env });
  }

  /** Asks the runtime to save; it answers with a `state` message. */
  save(): void {
    this.#saving = true;
    this.#conversation?.send({ type: 'save' });
  }

  /** Ends the line; the runtime goes on. */
  async close(): Promise<void> {
    this.#closed.abort(new Error('the line was closed'));
    this.#conversation?.end();
    await this.#running;
  }

  async #run(first: LinkConnection | undefined): Promise<void> {
    const { services, isAwake, onLost } = this.#options;
    const { signal } = this.#closed;
    let conversation = first;
    let failingSince: number | undefined;
    for (let failures = 0; !signal.aborted; failures += 1) {
      try {
        conversation ??= await this.#reattach(signal);
        await this.#talk(conversation);
      } catch (error) {
        services.logger.debug({ err: error }, 'the line to an agent broke');
      } finally {
        conversation?.end();
        this.#conversation = undefined;
        conversation = undefined;
      }
      if (signal.aborted) return;
      if (this.#progress || !isAwake()) {
        failures = 0;
        failingSince = undefined;
        this.#progress = false;
      }
      failingSince ??= performance.now();
      if (performance.now() - failingSince > services.times.linkLostMs) {
        services.metrics.lineLost();
        onLost();
        return;
      }
      await sleep(backoffMs(failures + 1, { baseMs: 50, maxMs: 2_000 }), signal);
    }
  }

  /** The guest may not listen yet, or the network not carry yet: tried again until the deadline. */
  async #open(signal: AbortSignal): Promise<LinkConnection> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        const { dial, services } = this.#options;
        const bounded = withDeadline(signal, services.times.dialMs);
        return new LinkConnection(await dial(bounded), this.#pace);
      } catch (error) {
        if (signal.aborted) throw error;
      }
      await sleep(backoffMs(attempt, { baseMs: 20, maxMs: 500 }), signal);
      signal.throwIfAborted();
    }
  }

  async #reattach(closed: AbortSignal): Promise<LinkConnection> {
    const { dial, token, outbox, services } = this.#options;
    const signal = withDeadline(closed, services.times.dialMs);
    const conversation = new LinkConnection(await dial(signal), this.#pace);
    try {
      conversation.send({ type: 'attach', token, after: this.#lastN });
      const { c } = await conversation.expect('attached', signal);
      outbox?.received(c);
      return conversation;
    } catch (error) {
      conversation.end();
      throw error;
    }
  }

  async #talk(conversation: LinkConnection): Promise<void> {
    const { outbox } = this.#options;
    // In one step, so that a frame that comes meanwhile is sent once.
    this.#conversation = conversation;
    for (const entry of outbox?.waiting ?? []) conversation.send({ type: 'client', ...entry });
    for (const message of this.#pending()) conversation.send(message);
    for await (const messages of conversation.messages()) {
      const numbered: NumberedMessage[] = [];
      let high = this.#lastN;
      for (const message of messages) {
        if (message.type === 'received') outbox?.received(message.c);
        if (!('n' in message) || message.n <= high) continue;
        high = message.n;
        numbered.push(message);
      }
      await outbox?.compact();
      if (numbered.length > 0) await this.#options.onMessages(numbered, this.#done);
    }
  }

  readonly #done = (n: number): void => {
    if (n <= this.#lastN) return;
    this.#lastN = n;
    this.#progress = true;
    this.#conversation?.send({ type: 'ack', n });
  };

  #pending(): WorkerMessage[] {
    const pending: WorkerMessage[] = [];
    if (this.#env !== undefined) pending.push({ type: 'env', env: this.#env });
    if (this.#saving) pending.push({ type: 'save' });
    return pending;
  }
}
