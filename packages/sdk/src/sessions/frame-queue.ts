import type { SessionFrame } from './frames.ts';

/** Numbers of queued frames at which reading pauses and resumes. */
const PAUSE_AT = 1_024;
const RESUME_AT = 256;

type Result = IteratorResult<SessionFrame, undefined>;
type Waiting = { resolve(result: Result): void; reject(error: unknown): void };

/** The received frames that have not been consumed. Ends or fails after the queued frames. */
export class FrameQueue {
  readonly #frames: SessionFrame[] = [];
  readonly #waiting: Waiting[] = [];
  readonly #onFull: (isFull: boolean) => void;
  #isFull = false;
  #end: { readonly error?: unknown } | undefined;

  /** `onFull` is called when the queue becomes full and when it has space again. */
  constructor(onFull: (isFull: boolean) => void) {
    this.#onFull = onFull;
  }

  get isFull(): boolean {
    return this.#isFull;
  }

  push(frame: SessionFrame): void {
    if (this.#end !== undefined) return;
    const waiting = this.#waiting.shift();
    if (waiting !== undefined) waiting.resolve({ done: false, value: frame });
    else this.#frames.push(frame);
    if (this.#frames.length >= PAUSE_AT) this.#setFull(true);
  }

  async next(): Promise<Result> {
    const value = this.#frames.shift();
    if (this.#frames.length <= RESUME_AT) this.#setFull(false);
    if (value !== undefined) return { done: false, value };
    if (this.#end !== undefined) return this.#ended(this.#end);
    return new Promise((resolve, reject) => this.#waiting.push({ resolve, reject }));
  }

  /** Ends the queue. */
  end(): void {
    this.#finish({});
  }

  /** Ends the queue with an error. */
  fail(error: unknown): void {
    this.#finish({ error });
  }

  #finish(end: { readonly error?: unknown }): void {
    if (this.#end !== undefined) return;
    this.#end = end;
    const [first, ...others] = this.#waiting.splice(0);
    if (first !== undefined) this.#ended(end).then(first.resolve, first.reject);
    for (const { resolve } of others) resolve({ done: true, value: undefined });
  }

  /** Throws the error once; later calls report the end. */
  async #ended(end: { readonly error?: unknown }): Promise<Result> {
    this.#end = {};
    if ('error' in end) throw end.error;
    return { done: true, value: undefined };
  }

  #setFull(isFull: boolean): void {
    if (this.#isFull === isFull) return;
    this.#isFull = isFull;
    this.#onFull(isFull);
  }
}
