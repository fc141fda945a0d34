import type {
  AgentLlm,
  AgentSetup,
  CaptureRequest,
  ForwardedFrame,
  WorkerMessage,
} from '@svc/contract';
import type { Microvm } from '@svc/microvm';
import { type Budget, backoffMs, sleep } from '@svc/service-kit/concurrency';
import type { WorkerLogger } from '../../logger.ts';
import type { AgentTimeouts } from '../timeouts.ts';
import type { CapturedMessage, NumberedMessage } from './guest-messages.ts';
import type { LinkConnection } from './link-connection.ts';
import { LinkConnector } from './link-connector.ts';
import type { Outbox } from './outbox.ts';

const RECONNECT_BACKOFF = { baseMs: 50, maxMs: 2_000 };

/** The receiver of a guest's messages. */
export interface AgentLinkHandler {
  /**
   * Handles messages in order; the link reads no further until this settles. Calls `acknowledge(n)` once the guest
   * need not send message `n` and those before it again. A rejection breaks the connection, and the guest sends
   * unacknowledged messages again.
   */
  receive(messages: readonly NumberedMessage[], acknowledge: (n: number) => void): Promise<void>;
  /** Called once, when the guest was unreachable or sent only invalid messages for too long. */
  lost(): void;
}

export interface AgentLinkMetrics {
  linkLost(): void;
}

export interface AgentLinkOptions {
  readonly vm: Pick<Microvm, 'dialAgent' | 'paused'>;
  /** Authenticates this worker to the runtime. */
  readonly token: string;
  /** The number of the guest's last message that has been handled; 0 for a fresh runtime. */
  readonly lastN: number;
  /** Receives pictures of the display, whether or not they were asked for. */
  readonly onCaptured: (message: CapturedMessage) => void;
  /** For what the links to all guests of the account hold, in bytes. */
  readonly held: Budget;
  /** Holds clients' frames until the guest has received them; undefined for an agent without clients. */
  readonly outbox: Outbox | undefined;
  /** The longest wait for the rest of a line of the guest, in milliseconds. Default: one minute. */
  readonly lineMs?: number;
  readonly timeouts: Pick<AgentTimeouts, 'dialMs' | 'linkLostMs'>;
  readonly metrics: AgentLinkMetrics;
  readonly logger: Pick<WorkerLogger, 'debug'>;
}

/**
 * The link to the agent runtime in a guest, reconnecting as often as needed. Each message of the guest is
 * handled once, in order; each frame of a client arrives once, in order.
 */
export class AgentLink {
  readonly #options: AgentLinkOptions;
  readonly #connector: LinkConnector;
  readonly #closed = new AbortController();
  #connection: LinkConnection | undefined;
  #running: Promise<void> = Promise.resolve();
  #lastN: number;
  /** The last client's frame that was sent over the current connection. */
  #sentC = 0;
  /** Whether messages were handled since the last failure. A link that makes progress is not lost. */
  #progress = false;
  #values: Extract<WorkerMessage, { type: 'env' }> | undefined;
  #saving = false;
  #capture: CaptureRequest | undefined;

  constructor(options: AgentLinkOptions) {
    const { timeouts, lastN } = options;
    this.#options = options;
    this.#connector = new LinkConnector({ ...options, dialMs: timeouts.dialMs });
    this.#lastN = lastN;
  }

  /**
   * Configures a fresh runtime, and keeps the link up from then on.
   * @throws MicrovmError, or the signal's reason, when the runtime does not become ready
   */
  async configure(
    setup: AgentSetup,
    handler: AgentLinkHandler,
    signal: AbortSignal,
  ): Promise<void> {
    const bounded = AbortSignal.any([signal, this.#closed.signal]);
    this.#running = this.#run(handler, await this.#connector.configure(setup, bounded));
  }

  /** Brings the link to an already configured runtime up in the background, and keeps it up. */
  reconnect(handler: AgentLinkHandler): void {
    this.#running = this.#run(handler, undefined);
  }

  /** Forwards a client's frame, now or once the link is up again. False when {@link Outbox.add} does not take it. */
  async forward(frame: ForwardedFrame, ready?: Promise<boolean>): Promise<boolean> {
    const entry = await this.#options.outbox?.add(frame, ready);
    if (entry === undefined) return false;
    this.#sendFrames();
    return true;
  }

  /**
   * Replaces the environment of the processes that the runtime starts from now on, unless it is undefined, and the model
   * from the next task on.
   */
  setValues(env: Readonly<Record<string, string>> | undefined, llm: AgentLlm): void {
    this.#values = { ...this.#values, type: 'env', ...(env === undefined ? {} : { env }), llm };
    this.#connection?.send(this.#values);
  }

  /** Asks the runtime to save; it answers with a `state` message. */
  save(): void {
    this.#saving = true;
    this.#connection?.send({ type: 'save' });
  }

  /** Asks for pictures of the display, now or once the link is up again. Replaces a request that is not answered. */
  capture(request: CaptureRequest): void {
    this.#capture = request;
    this.#connection?.send({ type: 'capture', ...request });
  }

  /** Withdraws the request for pictures. */
  stopCapture(): void {
    this.#capture = undefined;
    this.#connection?.send({ type: 'capture_stop' });
  }

  /** Closes the link; the runtime keeps running. */
  async close(): Promise<void> {
    this.#closed.abort(new Error('the link was closed'));
    this.#connection?.close();
    await this.#running;
  }

  async #run(handler: AgentLinkHandler, configured: LinkConnection | undefined): Promise<void> {
    const { vm, logger, metrics, timeouts } = this.#options;
    const { signal } = this.#closed;
    let connection = configured;
    let failingSince: number | undefined;
    for (let failures = 0; !signal.aborted; failures += 1) {
      let lackedRoom = false;
      try {
        connection ??= await this.#attach(signal);
        await this.#serve(connection, handler);
      } catch (error) {
        logger.debug({ err: error }, 'lost the connection to an agent');
      } finally {
        connection?.close();
        lackedRoom = connection?.lackedRoom === true;
        this.#connection = undefined;
        connection = undefined;
      }
      if (signal.aborted) return;
      // A paused guest cannot answer, so its silence does not count. Nor does what its account holds elsewhere.
      if (this.#progress || vm.paused || lackedRoom) {
        if (!lackedRoom) failures = 0;
        failingSince = undefined;
        this.#progress = false;
      }
      failingSince ??= performance.now();
      if (performance.now() - failingSince > timeouts.linkLostMs) {
        metrics.linkLost();
        handler.lost();
        return;
      }
      await sleep(backoffMs(failures + 1, RECONNECT_BACKOFF), signal);
    }
  }

  async #attach(signal: AbortSignal): Promise<LinkConnection> {
    const { connection, received } = await this.#connector.attach(this.#lastN, signal);
    this.#options.outbox?.received(received);
    return connection;
  }

  async #serve(connection: LinkConnection, handler: AgentLinkHandler): Promise<void> {
    const { outbox } = this.#options;
    this.#connection = connection;
    this.#sentC = 0;
    for (const message of this.#requests()) connection.send(message);
    connection.whenFlushed(() => this.#sendFrames());
    this.#sendFrames();
    for await (const messages of connection.messages()) {
      const fresh: NumberedMessage[] = [];
      let highest = this.#lastN;
      for (const message of messages) {
        if (message.type === 'received') outbox?.received(message.c);
        if (message.type === 'captured') this.#captured(message);
        if (!('n' in message) || message.n <= highest) continue;
        highest = message.n;
        fresh.push(message);
      }
      await outbox?.compact();
      if (fresh.length === 0) continue;
      await handler.receive(fresh, this.#acknowledge);
      this.#progress = true;
    }
  }

  /**
   * Sends the clients' frames that this connection has not carried, each once nothing else waits to be sent: they wait in the
   * outbox, so that they need no room of the account a second time.
   */
  #sendFrames(): void {
    const { outbox } = this.#options;
    while (this.#connection?.isFlushed === true) {
      const [entry] = outbox?.after(this.#sentC) ?? [];
      if (entry === undefined) return;
      this.#sentC = entry.c;
      this.#connection.send({ type: 'client', ...entry });
    }
  }

  #captured(message: CapturedMessage): void {
    if (message.id === this.#capture?.id) this.#capture = undefined;
    this.#options.onCaptured(message);
  }

  readonly #acknowledge = (n: number): void => {
    if (n <= this.#lastN) return;
    this.#lastN = n;
    this.#connection?.send({ type: 'ack', n });
  };

  /** The requests that every new connection repeats. */
  #requests(): WorkerMessage[] {
    const requests: WorkerMessage[] = [];
    if (this.#values !== undefined) requests.push(this.#values);
    if (this.#saving) requests.push({ type: 'save' });
    // The answer may have been lost with the connection, so that the guest's next one would not continue from it.
    if (this.#capture !== undefined)
      requests.push({ type: 'capture', ...this.#capture, whole: true });
    return requests;
  }
}
