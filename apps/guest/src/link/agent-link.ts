import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import {
  AGENT_LINK_LINE_BYTES,
  type AgentFrame,
  type AgentSetup,
  type WorkerMessage,
} from '@svc/contract';
import { LinkConnection } from './link-connection.ts';
import { LinkToken } from './link-token.ts';
import { Outbox, type OutgoingMessage } from './outbox.ts';

const ROOM_BYTES = 32 * 1024 * 1024;
const AUTHENTICATE_MS = 10_000;
/** Connections that have not named the token yet. */
const STRANGERS = 4;

export interface AgentLinkOptions {
  readonly host: string;
  readonly port: number;
  /** The only address that is let in, so that processes of the guest are not; undefined: any. */
  readonly workerAddress?: string;
  /** Default 32 MiB unacknowledged. */
  readonly roomBytes?: number;
  /** Default 10 s. */
  readonly authenticateMs?: number;
}

/** What the worker asks of the runtime. */
export interface LinkHandler {
  /** Once, before everything else. */
  configure(setup: AgentSetup): void;
  client(frame: Extract<WorkerMessage, { type: 'client' }>['frame']): void;
  env(values: Readonly<Record<string, string>>): void;
  save(): void;
}

/** The runtime's end of the line to the worker. */
export class AgentLink {
  readonly #options: AgentLinkOptions;
  readonly #handler: LinkHandler;
  readonly #outbox: Outbox;
  readonly #server: Server;
  readonly #connections = new Set<LinkConnection>();
  #token: LinkToken | undefined;
  #attached: LinkConnection | undefined;
  #lastClientMessage = 0;
  #dropping = false;

  private constructor(options: AgentLinkOptions, handler: LinkHandler) {
    this.#options = options;
    this.#handler = handler;
    this.#outbox = new Outbox({
      roomBytes: options.roomBytes ?? ROOM_BYTES,
      lineBytes: AGENT_LINK_LINE_BYTES,
    });
    this.#server = createServer((socket) => this.#accept(socket));
  }

  static async listen(options: AgentLinkOptions, handler: LinkHandler): Promise<AgentLink> {
    const link = new AgentLink(options, handler);
    link.#server.listen(options.port, options.host);
    await once(link.#server, 'listening');
    return link;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Gives a frame to the session. Frames of an agent that runs far ahead of {@link drained} are dropped. */
  frame(frame: AgentFrame): void {
    const droppable = frame.type !== 'task_completed' && frame.type !== 'exit';
    const kept = this.#push({ type: 'frame', frame }, droppable);
    if (kept === 'kept') this.#dropping = false;
    else if (kept === 'too_long') {
      this.#error('frame_too_large', 'The agent sent a frame that is too large; it was dropped.');
    } else if (!this.#dropping) {
      this.#dropping = true;
      this.#error('frame_rate', 'The agent sent more than could be taken; frames were dropped.');
    }
  }

  /** Gives the state of the session. False when it is too large for the line. */
  state(conversation: string, files: boolean): boolean {
    return this.#push({ type: 'state', conversation, files }, false) === 'kept';
  }

  exited(exitCode: number): void {
    this.#push({ type: 'exited', exitCode }, false);
  }

  /** Settles when the worker has acknowledged enough. */
  drained(): Promise<void> {
    return this.#outbox.drained();
  }

  async close(): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    for (const connection of this.#connections) connection.close();
    await closed;
  }

  #error(code: string, message: string): void {
    this.#push({ type: 'frame', frame: { type: 'error', code, message } }, false);
  }

  #push(message: OutgoingMessage, droppable: boolean): 'kept' | 'too_long' | 'full' {
    const kept = this.#outbox.push(message, { droppable });
    this.#attached?.wake();
    return kept;
  }

  #accept(socket: Socket): void {
    const { workerAddress, authenticateMs = AUTHENTICATE_MS } = this.#options;
    const mayCome = workerAddress === undefined || socket.remoteAddress === workerAddress;
    const strangers = [...this.#connections].filter((connection) => !connection.isLetIn);
    if (!mayCome || strangers.length >= STRANGERS) {
      socket.on('error', () => undefined).destroy();
      return;
    }
    const connection = new LinkConnection(socket, {
      authenticateMs,
      lineBytes: AGENT_LINK_LINE_BYTES,
      onMessage: (from, message) => this.#receive(from, message),
      onClosed: (closed) => {
        this.#connections.delete(closed);
        if (this.#attached === closed) this.#attached = undefined;
      },
    });
    this.#connections.add(connection);
  }

  #receive(from: LinkConnection, message: WorkerMessage): void {
    if (message.type === 'configure') this.#configure(from, message);
    else if (message.type === 'rehearse') this.#rehearse(from, message);
    else if (message.type === 'attach') this.#attach(from, message);
    else if (from !== this.#attached) throw new Error('the token has not been named');
    else this.#serve(from, message);
  }

  #configure(
    from: LinkConnection,
    { token, setup }: Extract<WorkerMessage, { type: 'configure' }>,
  ): void {
    if (this.#token !== undefined) throw new Error('the runtime is configured');
    this.#token = new LinkToken(token);
    from.answer({ type: 'configured' });
    this.#takeOver(from);
    this.#handler.configure(setup);
  }

  /** What a machine does for the first time is slow: done in advance, it is not when somebody waits for it. */
  #rehearse(from: LinkConnection, { token }: Extract<WorkerMessage, { type: 'rehearse' }>): void {
    if (this.#token !== undefined || !new LinkToken(token).matches(token)) {
      throw new Error('the runtime is configured');
    }
    from.answer({ type: 'rehearsed' });
  }

  #attach(
    from: LinkConnection,
    { token, after }: Extract<WorkerMessage, { type: 'attach' }>,
  ): void {
    if (this.#token?.matches(token) !== true) throw new Error('the token is wrong');
    this.#outbox.acknowledge(after);
    from.answer({ type: 'attached', c: this.#lastClientMessage });
    this.#takeOver(from);
  }

  #takeOver(connection: LinkConnection): void {
    const before = this.#attached;
    this.#attached = connection;
    if (before !== connection) before?.close();
    connection.letIn(this.#outbox);
  }

  #serve(
    from: LinkConnection,
    message: Exclude<WorkerMessage, { type: 'rehearse' | 'configure' | 'attach' }>,
  ): void {
    if (message.type === 'ack') this.#outbox.acknowledge(message.n);
    else if (message.type === 'env') this.#handler.env(message.env);
    else if (message.type === 'save') this.#handler.save();
    else {
      const { c, frame } = message;
      // Before it is handled: what a frame sets off comes after the word that it has arrived.
      from.answer({ type: 'received', c });
      if (c <= this.#lastClientMessage) return;
      this.#lastClientMessage = c;
      this.#handler.client(frame);
    }
  }
}
