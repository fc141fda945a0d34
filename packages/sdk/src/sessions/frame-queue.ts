import type { SessionFrame } from './frames.ts';

/** Frames that wait for the loop: beyond the first number nothing more is read, below the second it goes on. */
const MANY = 1_024;
const FEW = 256;

type Result = IteratorResult<SessionFrame, undefined>;
type Waiting = { resolve(result: Result): void; reject(error: unknown): void };

/** What was received and not yet asked for. Ends, or fails, behind the frames that it still holds. */
export class FrameQueue {
  readonly #frames: SessionFrame[] = [];
  readonly #waiting: Waiting[] = [];
  readonly #onFull: (isFull: boolean) => void;
  #isFull = false;
  #end: { readonly error?: unknown } | undefined;

  /** `onFull` is told when there is too much to read on, and when there is room again. */
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
    if (this.#frames.length >= MANY) this.#setFull(true);
  }

  async next(): Promise<Result> {
    const value = this.#frames.shift();
    if (this.#frames.length <= FEW) this.#setFull(false);
    if (value !== undefined) return { done: false, value };
    if (this.#end !== undefined) return this.#ended(this.#end);
    return new Promise((resolve, reject) => this.#waiting.push({ resolve, reject }));
  }

  /** No more frames come. */
  end(): void {
    this.#finish({});
  }

  /** No more frames come, because of this. */
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

  /** A failure is thrown once; whoever asks again is told that it is over. */
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
