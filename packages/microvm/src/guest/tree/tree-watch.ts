import type { Socket } from 'node:net';
import { MicrovmError } from '../../microvm-error.ts';
import { KeptConnection } from '../channel/kept-connection.ts';
import { openConnection } from '../channel/open-request.ts';
import { protocolViolation, readAnswer, readChunk } from '../channel/read-answer.ts';
import { destroyOnAbort, reasonOf } from './connection-errors.ts';
import type { GuestTreeOptions } from './tree-entry.ts';

/**
 * Asks the guest whether anything at all has happened in the file system of a tree since a listing. The guest answers in a
 * fraction of the time of a listing, and says so only when it knows.
 */
export class TreeWatch {
  readonly #options: GuestTreeOptions;
  readonly #kept = new KeptConnection();
  /** False once the guest has said that it cannot. */
  #isPossible = true;

  constructor(options: GuestTreeOptions) {
    this.#options = options;
  }

  /** Connects, for questions to come. Does nothing when the guest does not watch the tree. @throws MicrovmError */
  async open(signal: AbortSignal): Promise<void> {
    const socket = this.#kept.take() ?? (await this.#connect(signal));
    if (socket !== undefined) this.#kept.keep(socket);
  }

  /** False also when the guest does not know. @throws MicrovmError; the reason of the signal */
  async isUnchanged(generation: string, signal: AbortSignal): Promise<boolean> {
    const socket = this.#kept.take() ?? (await this.#connect(signal));
    if (socket === undefined) return false;
    try {
      socket.write(Buffer.from(generation, 'hex'));
      const answer = await readChunk(socket, signal);
      if (answer.length !== 1 || answer.readUInt8() > 1) throw protocolViolation();
      this.#kept.keep(socket);
      return answer.readUInt8() === 1;
    } catch (error) {
      socket.destroy();
      // The guest ends the connection when it has begun to watch anew.
      const isDropped = error instanceof MicrovmError && error.code === 'guest_unreachable';
      if (isDropped && !signal.aborted) return false;
      throw reasonOf(error, signal);
    }
  }

  /** Closes the idle connection. */
  close(): void {
    this.#kept.close();
  }

  async #connect(signal: AbortSignal): Promise<Socket | undefined> {
    if (!this.#isPossible) return undefined;
    const { address, token, root } = this.#options;
    const socket = await openConnection(address, signal);
    try {
      using _aborting = destroyOnAbort(socket, signal);
      socket.write(`${JSON.stringify({ op: 'tree-watch', root, token })}\n`);
      this.#isPossible = (await readAnswer(socket, signal)).watched === true;
    } catch (error) {
      socket.destroy();
      // A VM may be older than this worker, and does not know the request.
      const isUnknown = error instanceof MicrovmError && error.code === 'internal';
      if (!isUnknown) throw reasonOf(error, signal);
      this.#isPossible = false;
    }
    if (this.#isPossible) return socket;
    socket.destroy();
    return undefined;
  }
}
