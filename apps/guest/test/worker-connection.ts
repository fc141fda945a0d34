import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import type { GuestMessage, WorkerMessage } from '@svc/contract';
import { expect } from 'vitest';

/** The worker's end of a connection to the link. Keeps all messages that it receives. */
export class WorkerConnection {
  readonly received: GuestMessage[] = [];
  readonly #socket: Socket;
  closed = false;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket
      .on('error', () => socket.destroy())
      .once('close', () => {
        this.closed = true;
      });
    createInterface(socket)
      // It repeats those of the socket.
      .on('error', () => undefined)
      .on('line', (line) => {
        if (line !== '') this.received.push(JSON.parse(line));
      });
  }

  static async open(port: number): Promise<WorkerConnection> {
    const socket = connect(port, '127.0.0.1');
    const connection = new WorkerConnection(socket);
    await once(socket, 'connect');
    return connection;
  }

  send(...messages: readonly WorkerMessage[]): void {
    for (const message of messages) this.sendText(`${JSON.stringify(message)}\n`);
  }

  sendText(text: string): void {
    this.#socket.write(text);
  }

  /** Stops reading, so that sent messages pile up. */
  pause(): void {
    this.#socket.pause();
  }

  close(): void {
    this.#socket.destroy();
  }

  /** The first message of this type that `matches`, once it has arrived. */
  async waitFor<T extends GuestMessage['type']>(
    type: T,
    matches: (message: Extract<GuestMessage, { type: T }>) => boolean = () => true,
    timeout = 15_000,
  ): Promise<Extract<GuestMessage, { type: T }>> {
    const find = () => this.all(type).find(matches);
    await expect.poll(find, { timeout, interval: 10 }).toBeDefined();
    const found = find();
    if (found === undefined) throw new Error(`no ${type} was received`);
    return found;
  }

  /** The first frame of this type with these fields, once it has arrived. */
  async waitForFrame(type: string, fields: object = {}): Promise<object> {
    const matches = (frame: object) =>
      Object.entries({ type, ...fields }).every(
        ([name, value]) => (frame as Record<string, unknown>)[name] === value,
      );
    return (await this.waitFor('frame', ({ frame }) => matches(frame))).frame;
  }

  all<T extends GuestMessage['type']>(type: T): Extract<GuestMessage, { type: T }>[] {
    return this.received.filter(
      (message): message is Extract<GuestMessage, { type: T }> => message.type === type,
    );
  }

  /** The types of all frames and other numbered messages, in order. */
  order(): string[] {
    return this.received.flatMap((message) => {
      if (message.type === 'frame') return [message.frame.type];
      return 'n' in message ? [message.type] : [];
    });
  }

  async ended(): Promise<void> {
    while (!this.closed) await sleep(5);
  }
}
