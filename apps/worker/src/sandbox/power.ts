import type { Microvm } from '@svc/microvm';
import { Mutex, SingleFlight, untilAborted, withDeadline } from '@svc/service-kit/concurrency';
import type { Lifecycle } from './lifecycle.ts';

const PAUSE_MS = 15_000;
const RESUME_MS = 15_000;

/**
 * Pause and resume of one sandbox, one at a time. Each either succeeds or leaves the sandbox unchanged.
 * They run to completion even if the caller leaves, so that no pause is left half done.
 */
export class Power {
  readonly #lifecycle: Pick<Lifecycle, 'isIn' | 'vmIn' | 'transition' | 'signal'>;
  readonly #beforePause: () => Promise<void>;
  readonly #turns = new Mutex();
  readonly #resuming = new SingleFlight<void>();

  /** `beforePause` does the work that needs the running VM; it never rejects. */
  constructor(
    lifecycle: Pick<Lifecycle, 'isIn' | 'vmIn' | 'transition' | 'signal'>,
    beforePause: () => Promise<void>,
  ) {
    this.#lifecycle = lifecycle;
    this.#beforePause = beforePause;
  }

  /** @throws ServiceError `sandbox_not_running`; MicrovmError, the sandbox still running */
  pause(): Promise<void> {
    return this.#turns.run(async () => {
      if (this.#lifecycle.isIn('paused')) return;
      const vm = this.#lifecycle.vmIn('running');
      await this.#beforePause();
      await vm.pause(this.#deadline(PAUSE_MS));
      await this.#lifecycle.transition('paused');
    });
  }

  /** @throws ServiceError `sandbox_not_running`; MicrovmError, the sandbox still paused */
  resume(): Promise<void> {
    return this.#resuming.run(() =>
      this.#turns.run(async () => {
        if (this.#lifecycle.isIn('running')) return;
        const vm = this.#lifecycle.vmIn('paused');
        await vm.resume(this.#deadline(RESUME_MS));
        await this.#lifecycle.transition('running');
      }),
    );
  }

  /**
   * The VM of a running sandbox. Resumes a paused one first, once for all callers.
   * @throws ServiceError `sandbox_not_running`
   */
  async ensureRunning(caller: AbortSignal): Promise<Microvm> {
    // A pause that was already in progress is awaited, then undone.
    await untilAborted(this.#turns.idle(), caller);
    if (this.#lifecycle.isIn('paused')) await untilAborted(this.resume(), caller);
    return this.#lifecycle.vmIn('running');
  }

  /** Settles when no pause or resume is in progress. */
  idle(): Promise<void> {
    return this.#turns.idle();
  }

  #deadline(ms: number): AbortSignal {
    return withDeadline(this.#lifecycle.signal, ms);
  }
}
