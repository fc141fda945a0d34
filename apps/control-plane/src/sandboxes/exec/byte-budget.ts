import { fairShare } from '@svc/service-kit/concurrency';

/** Bytes that budgets share. */
export interface SharedBytes {
  free: number;
}

/** A bound of the bytes held at a time. Those beyond its `own` come from what it shares with others, at most its fair share. */
export class ByteBudget {
  readonly #bytes: number;
  readonly #own: number;
  readonly #shared: SharedBytes;
  #held = 0;

  constructor(bytes: number, own = bytes, shared: SharedBytes = { free: 0 }) {
    this.#bytes = bytes;
    this.#own = own;
    this.#shared = shared;
  }

  /** Takes up to `bytes`; returns the number taken. */
  take(bytes: number): number {
    const taken = Math.min(bytes, this.left);
    this.#hold(this.#held + taken);
    return taken;
  }

  give(bytes: number): void {
    this.#hold(this.#held - bytes);
  }

  /** What can be taken now. */
  get left(): number {
    const share = this.#own + Math.floor(fairShare(this.#shared.free));
    return Math.max(0, Math.min(this.#bytes, share) - this.#held);
  }

  #hold(bytes: number): void {
    this.#shared.free -= this.#beyondOwn(bytes) - this.#beyondOwn(this.#held);
    this.#held = bytes;
  }

  #beyondOwn(bytes: number): number {
    return Math.max(0, bytes - this.#own);
  }
}
