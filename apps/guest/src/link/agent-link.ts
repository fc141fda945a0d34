import {
  AGENT_LINK_LINE_BYTES,
  type AgentFrame,
  type AgentLlm,
  type AgentSetup,
  type CaptureRequest,
  type WorkerMessage,
} from '@svc/contract';
import type { LinkConnection } from './link-connection.ts';
import { LinkServer, type LinkServerOptions } from './link-server.ts';
import { LinkToken } from './link-token.ts';
import { Outbox, type OutgoingMessage } from './outbox.ts';

const UNACKNOWLEDGED_BYTES = 32 * 1024 * 1024;

export interface AgentLinkOptions extends LinkServerOptions {
  /** Unacknowledged bytes beyond which {@link AgentLink.drained} waits. Default 32 MiB. */
  readonly unacknowledgedBytes?: number;
}

/** The worker's requests to the runtime. */
export interface LinkHandler {
  /** Called once, before all others. */
  configure(setup: AgentSetup): void;
  client(frame: Extract<WorkerMessage, { type: 'client' }>['frame']): void;
  /** New values; those that are undefined stay. */
  setValues(env: Readonly<Record<string, string>> | undefined, llm: AgentLlm | undefined): void;
  /** Pictures of the display are wanted, or no longer; also called when the connection that wanted them is lost. */
  capture(request: CaptureRequest): void;
  stopCapture(): void;
  save(): void;
}

/** The runtime's end of the link to the worker. */
export class AgentLink {
  readonly #handler: LinkHandler;
  readonly #outbox: Outbox;
  readonly #server: LinkServer;
  #token: LinkToken | undefined;
  #attached: LinkConnection | undefined;
  #lastClientMessage = 0;
  #dropping = false;

  private constructor(options: AgentLinkOptions, handler: LinkHandler) {
    this.#handler = handler;
    this.#outbox = new Outbox({
      unacknowledgedBytes: options.unacknowledgedBytes ?? UNACKNOWLEDGED_BYTES,
      lineBytes: AGENT_LINK_LINE_BYTES,
    });
    this.#server = new LinkServer(options, {
      onMessage: (from, message) => this.#receive(from, message),
      onClosed: (connection) => {
        if (this.#attached !== connection) return;
        this.#attached = undefined;
        this.#handler.stopCapture();
      },
    });
  }

  /** Rejects when the address cannot be bound. */
  static async listen(options: AgentLinkOptions, handler: LinkHandler): Promise<AgentLink> {
    const link = new AgentLink(options, handler);
    await link.#server.listen();
    return link;
  }

  get port(): number {
    return this.#server.port;
  }

  /** Sends a frame of the session, and the picture that follows it. Frames of an agent that ignores {@link drained} for too long are dropped. */
  frame(frame: AgentFrame, image?: Buffer): void {
    const droppable = frame.type !== 'task_completed' && frame.type !== 'exit';
    const picture = image === undefined ? {} : { image: image.toString('base64') };
    const kept = this.#push({ type: 'frame', frame, ...picture }, droppable);
    if (kept === 'kept') this.#dropping = false;
    else if (kept === 'too_long') {
      this.#error('frame_too_large', 'The agent sent a frame that is too large; it was dropped.');
    } else if (!this.#dropping) {
      this.#dropping = true;
      this.#error('frame_rate', 'The agent sent more than could be taken; frames were dropped.');
    }
  }

  /** Sends the state of the session. False when it is too large for one message. */
  state(conversation: string, files: boolean): boolean {
    return this.#push({ type: 'state', conversation, files }, false) === 'kept';
  }

  /** Answers the request for pictures with this id. Lost without a connection: the worker then asks again. */
  captured(id: number, update: string): void {
    this.#attached?.answer({ type: 'captured', id, update });
  }

  exited(exitCode: number): void {
    this.#push({ type: 'exited', exitCode }, false);
  }

  /** Settles when the worker has acknowledged enough for more to be sent. */
  drained(): Promise<void> {
    return this.#outbox.drained();
  }

  close(): Promise<void> {
    return this.#server.close();
  }

  #error(code: string, message: string): void {
    this.#push({ type: 'frame', frame: { type: 'error', code, message } }, false);
  }

  #push(message: OutgoingMessage, droppable: boolean): 'kept' | 'too_long' | 'full' {
    const kept = this.#outbox.push(message, { droppable });
    this.#attached?.wake();
    return kept;
  }

  #receive(from: LinkConnection, message: WorkerMessage): void {
    if (message.type === 'configure') this.#configure(from, message);
    else if (message.type === 'rehearse') this.#rehearse(from, message);
    else if (message.type === 'attach') this.#attach(from, message);
    else if (from !== this.#attached) throw new Error('the connection has not authenticated');
    else this.#serve(from, message);
  }

  #configure(
    from: LinkConnection,
    { token, setup }: Extract<WorkerMessage, { type: 'configure' }>,
  ): void {
    if (this.#token !== undefined) throw new Error('the runtime is already configured');
    this.#token = new LinkToken(token);
    from.answer({ type: 'configured' });
    this.#switchTo(from);
    this.#handler.configure(setup);
  }

  /** Exercises the path of `configure` in advance: code that runs for the first time is slow. */
  #rehearse(from: LinkConnection, { token }: Extract<WorkerMessage, { type: 'rehearse' }>): void {
    if (this.#token !== undefined || !new LinkToken(token).matches(token)) {
      throw new Error('the runtime is already configured');
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
    this.#switchTo(from);
  }

  /** The newest authenticated connection replaces the one before. */
  #switchTo(connection: LinkConnection): void {
    const before = this.#attached;
    // The worker repeats what it wants on each connection.
    this.#handler.stopCapture();
    this.#attached = connection;
    if (before !== connection) before?.close();
    connection.authenticated(this.#outbox);
  }

  #serve(
    from: LinkConnection,
    message: Exclude<WorkerMessage, { type: 'rehearse' | 'configure' | 'attach' }>,
  ): void {
    if (message.type === 'ack') this.#outbox.acknowledge(message.n);
    else if (message.type === 'env') this.#handler.setValues(message.env, message.llm);
    else if (message.type === 'save') this.#handler.save();
    else if (message.type === 'capture') this.#handler.capture(message);
    else if (message.type === 'capture_stop') this.#handler.stopCapture();
    else {
      const { c, frame } = message;
      // Before the frame is handled, so that its receipt precedes the frames it causes.
      from.answer({ type: 'received', c });
      if (c <= this.#lastClientMessage) return;
      this.#lastClientMessage = c;
      this.#handler.client(frame);
    }
  }
}
