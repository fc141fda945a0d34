import type { Duplex } from 'node:stream';
import { LIMITS } from '@svc/contract';
import { sleep } from '@svc/service-kit/concurrency';
import type { WebSocket } from 'ws';
import type { ForwardedFrame } from '../../agents/link/outbox.ts';
import { type Clock, timestamp } from '../../clock.ts';
import type { Connection } from '../../sandbox/connections.ts';
import type { StoredFrame } from '../journal/format.ts';
import type { Journal } from '../journal/journal.ts';
import { RateLimit } from '../rate-limit.ts';
import { errorFrame, readClientFrame } from './client-frames.ts';

/** Beyond this a client that does not read is disconnected at once, in bytes. */
const MAX_UNSENT = 8 * 1024 * 1024;
/** Beyond this nothing more is read for a client until it has caught up, in bytes. */
const ENOUGH_UNSENT = 1024 * 1024;
const POLL_MS = 20;
/** For a client to answer the closing handshake. */
const CLOSE_MS = 1_000;
/** For one that has to read what stands before it first. */
const SLOW_CLOSE_MS = 5_000;
const FRAME_RATE = { perSecond: 200, burst: 1000 };
/** Errors about a client's own frames, the rate limit's included. */
const ERROR_RATE = { perSecond: 20, burst: 100 };
const RATE_ERROR_RATE = { perSecond: 1, burst: 1 };

export interface SessionClientOptions {
  readonly ws: WebSocket;
  /** Below `ws`: frames that come together go out together. */
  readonly socket: Duplex;
  readonly journal: Journal;
  readonly clock: Clock;
  readonly slowConsumerMs: number;
  /** Shows what came after this number first; without it only what comes from now on. */
  readonly afterSeq?: number;
  /** Passes a frame on to the agent; false when too many wait. */
  readonly forward: (frame: ForwardedFrame) => Promise<boolean>;
  readonly onFault: (error: unknown, what: string) => void;
}

/** One client of a session: gets every kept frame from some number on, once and in order, or is disconnected. */
export class SessionClient implements Connection {
  readonly #options: SessionClientOptions;
  readonly #closed = new AbortController();
  readonly #frames = new RateLimit(FRAME_RATE);
  readonly #errors = new RateLimit(ERROR_RATE);
  readonly #rateErrors = new RateLimit(RATE_ERROR_RATE);
  /** The number of the frame that is to be sent next. */
  #next: number;
  /** Whether frames are sent as they are kept; until then they are read from the journal. */
  #live: boolean;

  constructor(options: SessionClientOptions) {
    const { ws, journal, afterSeq } = options;
    this.#options = options;
    const newest = journal.lastSeq + 1;
    this.#next = afterSeq === undefined ? newest : Math.min(afterSeq + 1, newest);
    this.#live = this.#next === newest;
    // Invalid UTF-8, a frame larger than any that is answered: ws closes the connection with the right code.
    ws.on('error', () => undefined);
    ws.on('close', () => this.#closed.abort(new Error('the client is gone')));
    ws.on('message', (data: Buffer, isBinary) => this.#take(data, isBinary));
  }

  /** Sends `ready`, then what the client has missed. */
  start(ready: Readonly<Record<string, unknown>>): void {
    this.#send(JSON.stringify({ ...ready, ts: this.#ts() }));
    if (this.#live) return;
    this.#catchUp().catch((error) => {
      if (this.#closed.signal.aborted) return;
      this.#options.onFault(error, 'replay the frames of a session');
      this.close(1011, 'replay failed');
    });
  }

  get isOpen(): boolean {
    return !this.#closed.signal.aborted;
  }

  /** Whether it has so much to read that it is better waited for. */
  get isBehind(): boolean {
    return this.isOpen && this.#live && this.#options.ws.bufferedAmount > ENOUGH_UNSENT;
  }

  /** Takes frames at the moment they are kept. */
  show(frames: readonly StoredFrame[]): void {
    if (!this.#live || !this.isOpen) return;
    const { ws, socket } = this.#options;
    socket.cork();
    for (const { seq, text } of frames) {
      if (seq < this.#next) continue;
      if (ws.bufferedAmount > MAX_UNSENT) {
        this.giveUp();
        break;
      }
      this.#next = seq + 1;
      ws.send(text);
    }
    socket.uncork();
  }

  /** Disconnects a client that does not read. */
  giveUp(): void {
    this.#close(1013, 'slow consumer', SLOW_CLOSE_MS);
  }

  close(code: number, reason: string): void {
    this.#close(code, reason, CLOSE_MS);
  }

  #close(code: number, reason: string, ms: number): void {
    const { ws } = this.#options;
    this.#closed.abort(new Error(reason));
    ws.close(code, reason);
    const timer = setTimeout(() => ws.terminate(), ms);
    ws.once('close', () => clearTimeout(timer));
  }

  /** Reads on until the journal has nothing more; only then, in the same step, does the client go live. */
  async #catchUp(): Promise<void> {
    const { journal, socket, ws } = this.#options;
    let begun = false;
    while (this.#next <= journal.lastSeq) {
      const end = journal.lastSeq + 1;
      const frames = await journal.read(this.#next);
      if (!this.isOpen) return;
      // What was dropped before it came is missing for everybody; nobody is shown a hole in the middle.
      if (begun && journal.firstSeq > this.#next) return this.giveUp();
      begun = true;
      const first = frames[0]?.seq ?? end;
      socket.cork();
      for (const { text } of frames) ws.send(text);
      socket.uncork();
      this.#next = first + frames.length;
      if (!(await this.#read())) return;
    }
    this.#live = true;
  }

  /** Waits until the client has read most of what was sent; disconnects one that stands still. */
  async #read(): Promise<boolean> {
    const { ws, slowConsumerMs } = this.#options;
    let least = ws.bufferedAmount;
    let since = performance.now();
    while (this.isOpen && ws.bufferedAmount > ENOUGH_UNSENT) {
      await sleep(POLL_MS, this.#closed.signal);
      if (ws.bufferedAmount < least) {
        least = ws.bufferedAmount;
        since = performance.now();
      } else if (performance.now() - since > slowConsumerMs) {
        this.giveUp();
      }
    }
    return this.isOpen;
  }

  #take(data: Buffer, isBinary: boolean): void {
    if (!this.isOpen) return;
    if (!this.#frames.take()) {
      if (this.#rateErrors.take()) this.#send(errorFrame('frame_rate', this.#ts()));
      return;
    }
    const read = readClientFrame(data, isBinary);
    if ('error' in read) {
      this.#complain(read.error);
    } else if (read.frame.type === 'ping') {
      this.#send(JSON.stringify({ type: 'pong', ts: this.#ts() }));
    } else {
      this.#forward(read.frame);
    }
  }

  #forward(frame: ForwardedFrame): void {
    const { forward, onFault } = this.#options;
    forward(frame).then(
      (taken) => {
        if (!taken) this.#complain('busy');
      },
      (error) => {
        onFault(error, 'pass on a frame of a client');
        this.#complain('busy');
      },
    );
  }

  #complain(code: Parameters<typeof errorFrame>[0]): void {
    if (this.#errors.take()) this.#send(errorFrame(code, this.#ts()));
  }

  #send(text: string): void {
    const { ws } = this.#options;
    if (!this.isOpen) return;
    if (ws.bufferedAmount > MAX_UNSENT) this.giveUp();
    else ws.send(text);
  }

  #ts(): string {
    return timestamp(this.#options.clock.wall());
  }
}

/** The largest message that is still answered instead of ending the connection, in bytes. */
export const MAX_ANSWERED_BYTES = 8 * LIMITS.clientFrameBytes;
