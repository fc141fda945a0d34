import { ServiceError } from '@svc/contract';
import type { Microvm } from '@svc/microvm';
import { Mutex, SingleFlight, untilAborted, withDeadline } from '@svc/service-kit/concurrency';
import type { Sandbox } from './sandbox.ts';

const PAUSE_MS = 15_000;
const RESUME_MS = 15_000;

/**
 * Pause and resume of one sandbox, one at a time. Each either happens wholly or leaves the sandbox as it was.
 * They run to their end even if the caller leaves, so that no half-done pause is left behind.
 */
export class Power {
  readonly #sandbox: Sandbox;
  readonly #turns = new Mutex();
  readonly #resuming = new SingleFlight<void>();

  constructor(sandbox: Sandbox) {
    this.#sandbox = sandbox;
  }

  /** @throws ServiceError `sandbox_not_running`; MicrovmError, the sandbox still running */
  pause(): Promise<void> {
    return this.#turns.run(async () => {
      if (this.#isSettled('paused')) return;
      const vm = this.#sandbox.runningVm();
      await this.#sandbox.agent?.beforePause();
      await vm.pause(this.#deadline(PAUSE_MS));
      await this.#sandbox.transition('paused');
    });
  }

  /** @throws ServiceError `sandbox_not_running`; MicrovmError, the sandbox still paused */
  resume(): Promise<void> {
    return this.#resuming.run(() =>
      this.#turns.run(async () => {
        if (this.#isSettled('running')) return;
        const vm = this.#pausedVm();
        await vm.resume(this.#deadline(RESUME_MS));
        await this.#sandbox.transition('running');
      }),
    );
  }

  /**
   * The VM of a running sandbox; a paused one is resumed first, once for all who ask.
   * @throws ServiceError `sandbox_not_running`
   */
  async ensureRunning(caller: AbortSignal): Promise<Microvm> {
    // A pause under way is waited for: the caller comes after it, so it has to be undone.
    await untilAborted(this.#turns.idle(), caller);
    if (this.#sandbox.state === 'paused') await untilAborted(this.resume(), caller);
    return this.#sandbox.runningVm();
  }

  /** Settles when no pause or resume is under way. */
  idle(): Promise<void> {
    return this.#turns.idle();
  }

  #isSettled(state: 'running' | 'paused'): boolean {
    return this.#sandbox.state === state && this.#sandbox.endReason === undefined;
  }

  #pausedVm(): Microvm {
    const { vm, state, endReason } = this.#sandbox;
    if (vm === undefined || state !== 'paused' || endReason !== undefined) {
      throw new ServiceError('sandbox_not_running');
    }
    return vm;
  }

  #deadline(ms: number): AbortSignal {
    return withDeadline(this.#sandbox.signal, ms);
  }
}
