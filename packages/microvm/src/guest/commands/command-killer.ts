import { type RetryOptions, retry } from '@svc/service-kit/concurrency';
import type { GuestChannel } from '../channel/guest-channel.ts';

/** Commands that a guest has not killed, of which the oldest are given up: a hostile guest kills none. */
const MOST_LEFT = 256;
/** About four minutes. */
const RETRIES = { attempts: 16, baseMs: 1_000, maxMs: 30_000 };

/** Kills the commands of a guest that is perhaps paused or slow, and then does it later. */
export class CommandKiller {
  readonly #channel: Pick<GuestChannel, 'kill'>;
  readonly #retries: RetryOptions;
  /** The marks of the commands that may still run. */
  readonly #left = new Set<number>();
  /** Ends the attempts that are under way. */
  #attempts: AbortController | undefined;

  constructor(channel: Pick<GuestChannel, 'kill'>, retries: RetryOptions = RETRIES) {
    this.#channel = channel;
    this.#retries = retries;
  }

  /**
   * Settles when the guest has killed every process with this mark, or at the deadline. Then it is asked again, for some minutes
   * and at each {@link tryAgain}. Never rejects.
   */
  async kill(mark: number, deadline: AbortSignal): Promise<void> {
    this.#left.add(mark);
    const [oldest] = this.#left;
    if (oldest !== undefined && this.#left.size > MOST_LEFT) this.#left.delete(oldest);
    await this.#kill(mark, deadline).catch(() => {
      if (this.#attempts === undefined) this.tryAgain();
    });
  }

  /** Call it before another command is given a mark. */
  forget(mark: number): void {
    this.#left.delete(mark);
  }

  /** Kills what is left, in the background. Call it when the guest runs again. */
  tryAgain(): void {
    this.#attempts?.abort();
    if (this.#left.size === 0) return;
    const attempts = new AbortController();
    this.#attempts = attempts;
    const { signal } = attempts;
    retry(() => this.#killLeft(signal), { ...this.#retries, signal })
      // What is left then waits for the next call.
      .catch(() => undefined)
      .finally(() => {
        if (this.#attempts === attempts) this.#attempts = undefined;
      });
  }

  /** Gives up what is left. */
  close(): void {
    this.#left.clear();
    this.#attempts?.abort();
  }

  async #killLeft(signal: AbortSignal): Promise<void> {
    for (const mark of this.#left) await this.#kill(mark, signal);
  }

  async #kill(mark: number, signal: AbortSignal): Promise<void> {
    await this.#channel.kill(mark, signal);
    this.#left.delete(mark);
  }
}
