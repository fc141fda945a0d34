import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import type { GuestMessage, WorkerMessage } from '@svc/contract';
import { expect } from 'vitest';

/** A worker's end of the line, for tests: says what it is told to, and keeps what it hears. */
export class WorkerLine {
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
    createInterface(socket).on('line', (line) => {
      if (line !== '') this.received.push(JSON.parse(line));
    });
  }

  static async open(port: number): Promise<WorkerLine> {
    const socket = connect(port, '127.0.0.1');
    const line = new WorkerLine(socket);
    await once(socket, 'connect');
    return line;
  }

  say(...messages: readonly WorkerMessage[]): void {
    for (const message of messages) this.sayText(`${JSON.stringify(message)}\n`);
  }

  sayText(text: string): void {
    this.#socket.write(text);
  }

  /** Stops reading, so that what is sent piles up. */
  pause(): void {
    this.#socket.pause();
  }

  close(): void {
    this.#socket.destroy();
  }

  /** The first message of this type that `matches`, now or soon. */
  async hear<T extends GuestMessage['type']>(
    type: T,
    matches: (message: Extract<GuestMessage, { type: T }>) => boolean = () => true,
    timeout = 15_000,
  ): Promise<Extract<GuestMessage, { type: T }>> {
    const find = () => this.all(type).find(matches);
    await expect.poll(find, { timeout, interval: 10 }).toBeDefined();
    const found = find();
    if (found === undefined) throw new Error(`no ${type} was heard`);
    return found;
  }

  /** The first frame of this type that `matches`, now or soon. */
  async frame(type: string, fields: object = {}): Promise<object> {
    const matches = (frame: object) =>
      Object.entries({ type, ...fields }).every(
        ([name, value]) => (frame as Record<string, unknown>)[name] === value,
      );
    return (await this.hear('frame', ({ frame }) => matches(frame))).frame;
  }

  all<T extends GuestMessage['type']>(type: T): Extract<GuestMessage, { type: T }>[] {
    return this.received.filter(
      (message): message is Extract<GuestMessage, { type: T }> => message.type === type,
    );
  }

  /** What the session has said, in order: types of frames, and the messages between them. */
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
