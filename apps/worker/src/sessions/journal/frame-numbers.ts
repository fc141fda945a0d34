import { LIMITS } from '@svc/contract';
import { SingleFlight } from '@svc/service-kit/concurrency';
import { writeNumbering } from './directory.ts';

/** The next block is reserved when fewer numbers than this are left. */
const LOW = LIMITS.frameNumbersBlock / 2;
/** Pause after a failed attempt to reserve ahead, in ms. */
const RETRY_MS = 1_000;

export interface FrameNumbersOptions {
  readonly directory: string;
  /** Identifies this numberer to the control plane. */
  readonly numberer: string;
  /** The highest number reserved so far. */
  readonly reserved: number;
  /** Reserves numbers beyond `after`; returns the highest reserved one. */
  readonly reserve: (after: number, signal: AbortSignal) => Promise<number>;
}

/**
 * The reservation of a journal's numbers in the database. A number is used only once it is reserved, so that a later
 * start of the session never uses it again, even if this machine is lost.
 */
export class FrameNumbers {
  readonly #options: FrameNumbersOptions;
  readonly #flight = new SingleFlight<void>();
  readonly #closed = new AbortController();
  #reserved: number;
  #retryAt = 0;

  constructor(options: FrameNumbersOptions) {
    this.#options = options;
    this.#reserved = options.reserved;
  }

  get numberer(): string {
    return this.#options.numberer;
  }

  /**
   * Settles once all numbers up to and including `wanted` are reserved; reserves more ahead of need.
   * @throws ControlPlaneError, or the error of the request, when no more can be reserved
   */
  async use(wanted: number): Promise<void> {
    for (let tries = 0; wanted > this.#reserved; tries += 1) {
      // The first call may have joined a request for a lower number.
      if (tries === 2) throw new Error('the control plane has reserved too few numbers');
      await this.#extend(wanted);
    }
    if (this.#reserved - wanted >= LOW || performance.now() < this.#retryAt) return;
    // A failure is repeated soon, and reported once the numbers run out.
    this.#extend(wanted).catch(() => undefined);
  }

  /** Aborts a request under way, and settles when it has ended. Never rejects. */
  async close(): Promise<void> {
    this.#closed.abort(new Error('the journal is closed'));
    await this.#flight.run(async () => undefined).catch(() => undefined);
  }

  #extend(after: number): Promise<void> {
    const { directory, numberer, reserve } = this.#options;
    return this.#flight.run(async () => {
      try {
        this.#reserved = Math.max(this.#reserved, await reserve(after, this.#closed.signal));
        await writeNumbering(directory, { numberer, reserved: this.#reserved });
      } catch (error) {
        this.#retryAt = performance.now() + RETRY_MS;
        throw error;
      }
    });
  }
}
