import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { type ClientFrame, type ViewRegion, writeViewUpdate } from '@svc/contract';
import { type ConnectOptions, type SessionConnection, SvcClient } from '@svc/sdk';
import { type WebSocket, WebSocketServer } from 'ws';

/** The WebSocket of a session with a desktop, which shows what a test tells it and writes down what clients send. */
export class WatchedSession implements AsyncDisposable {
  /** The frames of all clients. */
  readonly received: ClientFrame[] = [];
  /** Answers `watch`, in place of a result and the update 1. */
  onWatch: ((id: string | undefined) => void) | undefined;
  /** Whether calls of mouse and keyboard are answered. */
  answers = true;
  readonly #server: WebSocketServer;
  readonly #client = new SvcClient({ baseUrl: 'http://127.0.0.1:1' });
  #socket: WebSocket | undefined;

  private constructor(server: WebSocketServer) {
    this.#server = server;
    server.on('connection', (socket) => {
      this.#socket = socket;
      socket.on('message', (data) => this.#receive(JSON.parse(data.toString())));
      this.send({ type: 'ready', agent: 'deictic', model: 'm', resumed: false, last_seq: 0 });
    });
  }

  static async start(): Promise<WatchedSession> {
    const server = new WebSocketServer({ host: '127.0.0.1', port: 0 });
    await once(server, 'listening');
    return new WatchedSession(server);
  }

  connect(options: ConnectOptions): SessionConnection {
    const { port } = this.#server.address() as AddressInfo;
    const connect_url = `ws://127.0.0.1:${port}/v1/sessions/s/ws`;
    return this.#client.sessions.connect(
      { chat_session_id: 's', connect_url, jwt: 'token' },
      options,
    );
  }

  /** The calls of mouse and keyboard, each with its arguments. */
  get inputs(): unknown[] {
    return this.received.flatMap((frame) =>
      frame.type === 'tool_call' && (frame.name === 'mouse' || frame.name === 'keyboard')
        ? [[frame.name, frame.arguments]]
        : [],
    );
  }

  /** The numbers of the updates that were confirmed. */
  get confirmed(): number[] {
    return this.received.flatMap((frame) => (frame.type === 'view_ack' ? [frame.number] : []));
  }

  get isWatched(): boolean {
    const calls = this.received.flatMap((frame) =>
      frame.type === 'tool_call' && frame.name.endsWith('watch') ? [frame.name] : [],
    );
    return calls.at(-1) === 'watch';
  }

  send(frame: object): void {
    this.#socket?.send(JSON.stringify({ ...frame, ts: 'now' }));
  }

  /** Shows regions to the client that watches. */
  show(number: number, regions: readonly ViewRegion[] = []): void {
    this.#socket?.send(
      writeViewUpdate({ number, isCurrent: true, width: 1280, height: 800, regions }),
    );
  }

  /** Breaks the connection, which the client establishes again. */
  cut(): void {
    this.#socket?.terminate();
  }

  /** Ends the session. */
  end(): void {
    this.#socket?.close(1000);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#server.clients) socket.terminate();
    this.#server.close();
    await this.#client.close();
  }

  #receive(frame: ClientFrame): void {
    this.received.push(frame);
    if (frame.type !== 'tool_call') return;
    if (frame.name === 'watch' && this.onWatch !== undefined) {
      this.onWatch(frame.id);
      return;
    }
    const isInput = frame.name === 'mouse' || frame.name === 'keyboard';
    if (isInput && !this.answers) return;
    this.send({ type: 'tool_result', id: frame.id, content: '', is_error: false });
    if (frame.name === 'watch') this.show(1);
  }
}
