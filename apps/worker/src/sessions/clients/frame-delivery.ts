import type { Duplex } from 'node:stream';
import { type Budget, sleep } from '@svc/service-kit/concurrency';
import { UnsentBytes } from '@svc/service-kit/websocket';
import type { WebSocket } from 'ws';
import type { StoredFrame } from '../journal/format.ts';
import type { Journal } from '../journal/journal.ts';

/** A client with more unread bytes than this is disconnected at once. */
const MAX_UNSENT = 8 * 1024 * 1024;
/** A client with more unread bytes than this is behind: a replay, or the guest, waits for it. */
const BEHIND_UNSENT = 1024 * 1024;
const POLL_MS = 20;
/** For a client to answer the closing handshake. */
const CLOSE_MS = 1_000;
/** For a client that has to read the frames before the close frame first. */
const READ_CLOSE_MS = 5_000;

export interface FrameDeliveryOptions {
  readonly ws: WebSocket;
  /** The socket below `ws`; corked so that a batch of frames is sent together. */
  readonly socket: Duplex;
  readonly journal: Pick<Journal, 'firstSeq' | 'lastSeq' | 'read'>;
  readonly slowConsumerMs: number;
  /** For what clients of the account have not read, in bytes. */
  readonly unsent: Budget;
  /** Replays the frames after this number first; without it the client gets only new ones. */
  readonly afterSeq?: number;
}

/** Delivers a session's frames to one client: each frame from some number on, once and in order, or disconnects it. */
export class FrameDelivery {
  readonly #options: FrameDeliveryOptions;
  readonly #unsent: UnsentBytes;
  readonly #closed = new AbortController();
  /** The number of the next frame to send. */
  #next: number;
  /** Whether frames are sent as they are stored; until then they are read from the journal. */
  #live: boolean;

  constructor(options: FrameDeliveryOptions) {
    const { ws, journal, afterSeq } = options;
    this.#options = options;
    this.#unsent = new UnsentBytes(ws, BEHIND_UNSENT, options.unsent);
    const newest = journal.lastSeq + 1;
    this.#next = afterSeq === undefined ? newest : Math.min(afterSeq + 1, newest);
    this.#live = this.#next === newest;
    ws.on('close', () => this.#closed.abort(new Error('the client has disconnected')));
  }

  get isOpen(): boolean {
    return !this.#closed.signal.aborted;
  }

  /** Whether the client receives live frames, and has too many bytes left to read. */
  get isBehind(): boolean {
    return this.isOpen && this.#live && this.#options.ws.bufferedAmount > BEHIND_UNSENT;
  }

  /** The bytes that wait to be sent. */
  get unsentBytes(): number {
    return this.#options.ws.bufferedAmount;
  }

  /** Sends a message outside the session's frames. */
  send(message: string | Uint8Array): void {
    if (this.isOpen) this.#send(message);
  }

  /** Sends a picture behind the frame that announced it. A client that is still being replayed misses it. */
  showPicture(image: Buffer): void {
    if (this.#live) this.send(image);
  }

  /** Sends frames that were just stored; leaves them to the replay while one runs. */
  show(frames: readonly StoredFrame[]): void {
    if (!this.#live || !this.isOpen) return;
    const { socket } = this.#options;
    socket.cork();
    for (const { seq, text } of frames) {
      if (seq < this.#next) continue;
      if (!this.#send(text)) break;
      this.#next = seq + 1;
    }
    socket.uncork();
  }

  /** Replays the frames that the client has missed. Rejects when the journal cannot be read. */
  async replay(): Promise<void> {
    const { journal, socket } = this.#options;
    if (this.#live) return;
    let begun = false;
    while (this.#next <= journal.lastSeq) {
      const end = journal.lastSeq + 1;
      const frames = await journal.read(this.#next);
      if (!this.isOpen) return;
      // Frames dropped before the replay are missing for every client; a gap within it would look like a loss.
      if (begun && journal.firstSeq > this.#next) return this.disconnectSlow();
      begun = true;
      const first = frames[0]?.seq ?? end;
      socket.cork();
      const isSent = frames.every(({ text }) => this.#unsent.send(text, false));
      socket.uncork();
      if (!isSent) return this.disconnectSlow();
      this.#next = first + frames.length;
      if (!(await this.#caughtUp())) return;
    }
    // In the same tick as the check above, so that no frame is stored in between.
    this.#live = true;
  }

  /** Disconnects a client that does not read. */
  disconnectSlow(): void {
    this.#close(1013, 'slow consumer', READ_CLOSE_MS);
  }

  close(code: number, reason: string): void {
    this.#close(code, reason, CLOSE_MS);
  }

  /** Like {@link close}, with time to read the frames that were sent. */
  finish(code: number, reason: string): void {
    if (this.isOpen) this.#close(code, reason, READ_CLOSE_MS);
  }

  /** Disconnects a client that has read too little. False once it is disconnected. */
  #send(message: string | Uint8Array): boolean {
    const isBinary = typeof message !== 'string';
    const isSent =
      this.#options.ws.bufferedAmount <= MAX_UNSENT && this.#unsent.send(message, isBinary);
    if (!isSent) this.disconnectSlow();
    return isSent;
  }

  #close(code: number, reason: string, ms: number): void {
    const { ws } = this.#options;
    this.#closed.abort(new Error(reason));
    ws.close(code, reason);
    const timer = setTimeout(() => ws.terminate(), ms);
    ws.once('close', () => clearTimeout(timer));
  }

  /** Waits until the client has read most of the replay; disconnects one that makes no progress. */
  async #caughtUp(): Promise<boolean> {
    const { ws, slowConsumerMs } = this.#options;
    let least = ws.bufferedAmount;
    let since = performance.now();
    while (this.isOpen && ws.bufferedAmount > BEHIND_UNSENT) {
      await sleep(POLL_MS, this.#closed.signal);
      if (ws.bufferedAmount < least) {
        least = ws.bufferedAmount;
        since = performance.now();
      } else if (performance.now() - since > slowConsumerMs) {
        this.disconnectSlow();
      }
    }
    return this.isOpen;
  }
}
