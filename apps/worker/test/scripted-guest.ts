import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import type { AgentFrame, GuestMessage, WorkerMessage } from '@svc/contract';
import { expect } from 'vitest';

type Numbered = Extract<GuestMessage, { readonly n: number }>;
type Unnumbered<T> = T extends unknown ? Omit<T, 'n'> : never;

/**
 * A scripted agent runtime behind the guest's end of the agent link: a real TCP server that numbers, keeps and resends
 * messages like the runtime, and that can be made to lie.
 */
export class ScriptedGuest implements AsyncDisposable {
  /** Every message of the worker, in order, over all connections. */
  readonly heard: WorkerMessage[] = [];
  /** Answers a client's frame. By default, each task gets one turn. */
  onClient: (frame: Extract<WorkerMessage, { type: 'client' }>['frame']) => void = (frame) => {
    if (frame.type === 'task') this.turn(frame.prompt, `did ${frame.prompt}`);
  };
  /** Answers a `save` request. By default, sends the current conversation. */
  onSave: () => void = () => this.state(this.conversation);
  /** Answers a request for pictures of the display. By default, there are none. */
  onCapture: (request: Extract<WorkerMessage, { type: 'capture' }>) => void = () => undefined;
  /** Answers a `configure` request in place of the default, `configured`. */
  onConfigure: ((socket: Socket) => void) | undefined;
  /** Whether the guest accepts connections. */
  open = true;
  /** Whether the guest confirms clients' frames with `received`. */
  answersReceived = true;
  conversation = 'nothing yet';
  connections = 0;
  readonly #server: Server;
  #sockets = new Set<Socket>();
  #attached: Socket | undefined;
  #token: string | undefined;
  #pending: Numbered[] = [];
  #n = 0;
  #c = 0;

  constructor() {
    this.#server = createServer((socket) => this.#accept(socket));
  }

  static async listen(): Promise<ScriptedGuest> {
    const guest = new ScriptedGuest();
    guest.#server.listen(0, '127.0.0.1');
    await once(guest.#server, 'listening');
    return guest;
  }

  get port(): number {
    const address = this.#server.address();
    if (typeof address !== 'object' || address === null) throw new Error('no address');
    return address.port;
  }

  /** The number of messages that the worker has not acknowledged. */
  get unacknowledged(): number {
    return this.#pending.length;
  }

  get lastN(): number {
    return this.#n;
  }

  get attached(): boolean {
    return this.#attached !== undefined;
  }

  /** The setup of the last `configure` request. */
  get setup() {
    return this.all('configure').at(-1)?.setup;
  }

  all<T extends WorkerMessage['type']>(type: T): Extract<WorkerMessage, { type: T }>[] {
    return this.heard.filter(
      (message): message is Extract<WorkerMessage, { type: T }> => message.type === type,
    );
  }

  frame(frame: AgentFrame | Record<string, unknown>): void {
    this.#push({ type: 'frame', frame: frame as AgentFrame });
  }

  /** Sends a frame and the picture that follows it. */
  picture(frame: Record<string, unknown>, image: Buffer): void {
    this.#push({ type: 'frame', frame: frame as AgentFrame, image: image.toString('base64') });
  }

  /** Sends an update of a live view, as the answer to the request with this id. */
  captured(id: number, update: Uint8Array): void {
    this.#send({ type: 'captured', id, update: Buffer.from(update).toString('base64') });
  }

  state(conversation: string, files = false): void {
    this.#push({ type: 'state', conversation, files });
  }

  exited(exitCode: number): void {
    this.#push({ type: 'exited', exitCode });
  }

  /** Sends a whole turn whose only text is `word`. */
  turn(conversation: string, word: string, files = false): void {
    this.conversation = conversation;
    this.frame({ type: 'task_started' });
    this.frame({ type: 'text_delta', data: word });
    this.state(conversation, files);
    this.frame({ type: 'task_completed', status: 'completed', result: word });
  }

  /** Sends raw bytes. */
  raw(data: string | Buffer): void {
    this.#attached?.write(data);
  }

  /** Settles when the worker has acknowledged every message. */
  async drained(): Promise<void> {
    await expect.poll(() => this.unacknowledged).toBe(0);
  }

  /** Breaks every connection. The guest stays detached until the worker reconnects. */
  cut(): void {
    this.#attached = undefined;
    for (const socket of this.#sockets) socket.destroy();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.cut();
    await closed;
  }

  #push(message: Unnumbered<Numbered>): void {
    this.#n += 1;
    const numbered = { ...message, n: this.#n } as Numbered;
    this.#pending.push(numbered);
    this.#send(numbered);
  }

  #send(message: GuestMessage): void {
    this.#attached?.write(`${JSON.stringify(message)}\n`);
  }

  #accept(socket: Socket): void {
    this.connections += 1;
    if (!this.open) {
      socket.destroy();
      return;
    }
    this.#sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => {
      this.#sockets.delete(socket);
      if (this.#attached === socket) this.#attached = undefined;
    });
    let rest = '';
    socket.setEncoding('utf8').on('data', (text: string) => {
      const lines = (rest + text).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) this.#receive(socket, JSON.parse(line) as WorkerMessage);
    });
  }

  #receive(socket: Socket, message: WorkerMessage): void {
    this.heard.push(message);
    if (message.type === 'configure') this.#configure(socket, message.token);
    else if (message.type === 'attach') this.#attach(socket, message);
    else if (socket !== this.#attached) socket.destroy();
    else if (message.type === 'ack') this.#acknowledge(message.n);
    else if (message.type === 'client') this.#client(message);
    else if (message.type === 'save') this.onSave();
    else if (message.type === 'capture') this.onCapture(message);
  }

  #configure(socket: Socket, token: string): void {
    if (this.#token !== undefined) {
      socket.destroy();
      return;
    }
    this.#token = token;
    this.#attached = socket;
    if (this.onConfigure === undefined) this.#send({ type: 'configured' });
    else this.onConfigure(socket);
  }

  #attach(socket: Socket, { token, after }: Extract<WorkerMessage, { type: 'attach' }>): void {
    if (token !== this.#token) {
      socket.destroy();
      return;
    }
    this.#attached?.destroy();
    this.#attached = socket;
    this.#acknowledge(after);
    this.#send({ type: 'attached', c: this.#c });
    for (const pending of this.#pending) this.#send(pending);
  }

  #acknowledge(n: number): void {
    this.#pending = this.#pending.filter((message) => message.n > n);
  }

  #client({ c, frame }: Extract<WorkerMessage, { type: 'client' }>): void {
    if (this.answersReceived) this.#send({ type: 'received', c });
    if (c <= this.#c) return;
    this.#c = c;
    this.onClient(frame);
  }
}
