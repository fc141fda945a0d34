import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import type { AgentFrame, GuestMessage, WorkerMessage } from '@svc/contract';
import { until } from './until.ts';

type Numbered = Extract<GuestMessage, { readonly n: number }>;
type Unnumbered<T> = T extends unknown ? Omit<T, 'n'> : never;

/**
 * The agent runtime's end of the line, as a script: a real TCP server that numbers, keeps and resends as the
 * runtime does, and that can be made to lie.
 */
export class ScriptedGuest implements AsyncDisposable {
  /** Everything the worker sent, in order, over all connections. */
  readonly heard: WorkerMessage[] = [];
  /** Answers a client's frame; by default a task gets one turn. */
  onClient: (frame: Extract<WorkerMessage, { type: 'client' }>['frame']) => void = (frame) => {
    if (frame.type === 'task') this.turn(frame.prompt, `did ${frame.prompt}`);
  };
  /** What `save` is answered with; undefined: nothing. */
  onSave: () => void = () => this.state(this.conversation);
  /** Does instead of the usual when the worker configures; undefined: `configured`. */
  onConfigure: ((socket: Socket) => void) | undefined;
  /** Whether connections are let in. */
  open = true;
  /** Whether `received` is answered. */
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

  /** How many numbered messages have not been acknowledged. */
  get unacknowledged(): number {
    return this.#pending.length;
  }

  get lastN(): number {
    return this.#n;
  }

  get attached(): boolean {
    return this.#attached !== undefined;
  }

  /** What the worker configured it with. */
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

  state(conversation: string, files = false): void {
    this.#push({ type: 'state', conversation, files });
  }

  exited(exitCode: number): void {
    this.#push({ type: 'exited', exitCode });
  }

  /** A whole turn with one word in it. */
  turn(conversation: string, word: string, files = false): void {
    this.conversation = conversation;
    this.frame({ type: 'task_started' });
    this.frame({ type: 'text_delta', data: word });
    this.state(conversation, files);
    this.frame({ type: 'task_completed', status: 'completed', result: word });
  }

  /** Sends bytes as they are. */
  raw(data: string | Buffer): void {
    this.#attached?.write(data);
  }

  /** Settles when the worker has acknowledged everything. */
  async drained(): Promise<void> {
    await until(() => {
      if (this.#pending.length > 0) throw new Error(`${this.#pending.length} are not acknowledged`);
    });
  }

  /** Breaks every connection off; nobody is attached from then on, until the worker comes back. */
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
