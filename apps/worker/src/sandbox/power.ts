import { ServiceError } from '@svc/contract';
import type { Microvm } from '@svc/microvm';
import { Mutex, SingleFlight, untilAborted, withDeadline } from '@svc/service-kit/concurrency';
import type { Lifecycle } from './lifecycle.ts';

const PAUSE_MS = 15_000;
const RESUME_MS = 15_000;

/** The parts of a sandbox that a pause and a use of its VM wait for. */
export interface PowerSteps {
  /** Settles when the VM may be used. */
  readonly usable: () => Promise<void>;
  /** Does the work that needs the running VM; bounded in time. */
  readonly beforePause: () => Promise<void>;
}

/**
 * Pause and resume of one sandbox, one at a time. Each either succeeds or leaves the sandbox unchanged.
 * They run to completion even if the caller leaves, so that no pause is left half done.
 */
export class Power {
  readonly #lifecycle: Pick<Lifecycle, 'isIn' | 'vmIn' | 'transition' | 'signal'>;
  readonly #steps: PowerSteps;
  readonly #turns = new Mutex();
  readonly #resuming = new SingleFlight<void>();
  #untilPause = new AbortController();
  #isHeld = false;
  #mayBeReleased = true;
  #mayBeStopped = false;

  constructor(
    lifecycle: Pick<Lifecycle, 'isIn' | 'vmIn' | 'transition' | 'signal'>,
    steps: PowerSteps,
  ) {
    this.#lifecycle = lifecycle;
    this.#steps = steps;
  }

  /** Aborts at the next pause. What ends with a pause asks for it before it looks at the state. */
  get untilPause(): AbortSignal {
    return this.#untilPause.signal;
  }

  /** Whether the VM may not run, see {@link hold}. */
  get isHeld(): boolean {
    return this.#isHeld;
  }

  /** Whether a running sandbox has to be released, because {@link hold} has stopped its VM, also if it failed after that. */
  get mayBeStopped(): boolean {
    return this.#mayBeStopped;
  }

  /**
   * Stops the VM while the sandbox stays in its state. Until it is released, whoever wants to use, pause or resume it gets
   * `worker_unreachable`. May be called again, also after a failure. @throws MicrovmError
   */
  hold(): Promise<void> {
    return this.#turns.run(async () => {
      if (this.#lifecycle.isIn('running')) {
        this.#mayBeStopped = true;
        await this.#lifecycle.vmIn('running').hold(this.#deadline(PAUSE_MS));
      }
      this.#isHeld = true;
    });
  }

  /** Makes {@link release} do nothing from now on, because the sandbox is to be destroyed and may run elsewhere. */
  forbidRelease(): void {
    this.#mayBeReleased = false;
  }

  /** Undoes {@link hold}, unless that is forbidden. @throws MicrovmError, the VM still held */
  release(): Promise<void> {
    return this.#turns.run(async () => {
      if (!this.#mayBeReleased) return;
      if (this.#mayBeStopped && this.#lifecycle.isIn('running')) {
        await this.#lifecycle.vmIn('running').resume(this.#deadline(RESUME_MS));
      }
      this.#mayBeStopped = false;
      this.#isHeld = false;
    });
  }

  /**
   * @throws ServiceError `sandbox_not_running`, `worker_unreachable`; MicrovmError, or an error of {@link PowerSteps}, the
   *   sandbox still running
   */
  pause(): Promise<void> {
    return this.#turns.run(async () => {
      this.#assertNotHeld();
      if (this.#lifecycle.isIn('paused')) return;
      const vm = this.#lifecycle.vmIn('running');
      await untilAborted(this.#steps.usable(), this.#deadline(PAUSE_MS));
      await this.#steps.beforePause();
      await vm.pause(this.#deadline(PAUSE_MS));
      await this.#lifecycle.transition('paused');
      this.#untilPause.abort(new ServiceError('sandbox_not_running'));
      this.#untilPause = new AbortController();
    });
  }

  /** @throws ServiceError `sandbox_not_running`, `worker_unreachable`; MicrovmError, the sandbox still paused */
  resume(): Promise<void> {
    return this.#resuming.run(() =>
      this.#turns.run(async () => {
        this.#assertNotHeld();
        if (this.#lifecycle.isIn('running')) return;
        const vm = this.#lifecycle.vmIn('paused');
        await vm.resume(this.#deadline(RESUME_MS));
        await this.#lifecycle.transition('running');
      }),
    );
  }

  /**
   * The VM of a running sandbox, once it is usable. Resumes a paused one first, once for all callers.
   * @throws ServiceError `sandbox_not_running`, `worker_unreachable`, or an error of {@link PowerSteps.usable}
   */
  async ensureRunning(caller: AbortSignal): Promise<Microvm> {
    // A pause that was already in progress is awaited, then undone.
    await untilAborted(this.#turns.idle(), caller);
    this.#assertNotHeld();
    if (this.#lifecycle.isIn('paused')) await untilAborted(this.resume(), caller);
    await untilAborted(this.#steps.usable(), caller);
    return this.#lifecycle.vmIn('running');
  }

  /**
   * The VM of a sandbox that is running, once it is usable. A paused one stays paused.
   * @throws ServiceError `sandbox_not_running`, `worker_unreachable`, or an error of {@link PowerSteps.usable}
   */
  async runningVm(caller: AbortSignal): Promise<Microvm> {
    await untilAborted(this.#turns.idle(), caller);
    this.#assertNotHeld();
    await untilAborted(this.#steps.usable(), caller);
    return this.#lifecycle.vmIn('running');
  }

  /** Settles when no pause or resume is in progress. */
  idle(): Promise<void> {
    return this.#turns.idle();
  }

  #assertNotHeld(): void {
    if (this.#isHeld) throw new ServiceError('worker_unreachable');
  }

  #deadline(ms: number): AbortSignal {
    return withDeadline(this.#lifecycle.signal, ms);
  }
}
