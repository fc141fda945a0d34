import { Wakeable } from '@svc/service-kit/concurrency';
import type { Clock } from '../clock.ts';
import type { WorkerLogger } from '../logger.ts';
import type { LeaseFile } from './lease-file.ts';

/** Sandboxes that are made meanwhile, and failed attempts, are seen to this often. */
const HELD_POLL_MS = 1_000;

/** A sandbox whose VM can be held. */
interface HeldSandbox {
  readonly id: string;
  readonly power: {
    readonly isHeld: boolean;
    hold(): Promise<void>;
    release(): Promise<void>;
  };
}

export interface LeaseOptions {
  readonly file: LeaseFile;
  /** Monotonic time of the last renewal in ms: of an earlier process, or now. */
  readonly renewedAtMs: number;
  /** For how long the VMs may run after a report that the control plane has accepted, in ms. */
  readonly leaseMs: number;
  readonly registry: { live(): HeldSandbox[] };
  readonly clock: Clock;
  readonly logger: WorkerLogger;
  readonly onFault: (error: unknown, action: string) => void;
}

/**
 * The right of this worker to run its VMs, which each report renews that a control plane accepts. When it ends, the VMs
 * are held, because the control plane is about to give the worker up and their sessions may go on elsewhere. When it is
 * renewed, they go on as if nothing had happened, except those that the control plane has ended meanwhile.
 */
export class Lease {
  readonly #options: LeaseOptions;
  readonly #wakeable = new Wakeable();
  #renewedAt: number;
  /** The sandboxes that the last report was told to destroy. */
  #ended: ReadonlySet<string> = new Set();
  #isOver = false;
  #isSaving = false;

  constructor(options: LeaseOptions) {
    this.#options = options;
    this.#renewedAt = options.renewedAtMs;
  }

  /**
   * Renews the lease.
   * @param sentAtMs monotonic time at which the accepted report was sent
   * @param destroy the sandboxes that are to be destroyed, by id
   */
  renew(sentAtMs: number, destroy: Iterable<string>): void {
    this.#renewedAt = Math.max(this.#renewedAt, sentAtMs);
    this.#ended = new Set(destroy);
    if (this.#isOver) this.#wakeable.wake();
    this.#save().catch((error) => this.#options.onFault(error, 'save when the lease was renewed'));
  }

  /** Holds and releases the VMs until `signal` aborts. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, leaseMs } = this.#options;
    while (!signal.aborted) {
      const leftMs = this.#renewedAt + leaseMs - clock.monotonic();
      if (leftMs > 0) await this.#release();
      else await this.#hold();
      const isSettled = leftMs > 0 && this.#held().length === 0;
      await this.#wakeable.wait(isSettled ? leftMs : HELD_POLL_MS, signal);
    }
  }

  /** Without the last renewals, the lease of a later process ends sooner. */
  async #save(): Promise<void> {
    if (this.#isSaving) return;
    this.#isSaving = true;
    try {
      await this.#options.file.save(this.#renewedAt);
    } finally {
      this.#isSaving = false;
    }
  }

  async #hold(): Promise<void> {
    const { registry, logger } = this.#options;
    if (!this.#isOver) logger.error('no control plane has answered for long; the VMs are held');
    this.#isOver = true;
    const running = registry.live().filter(({ power }) => !power.isHeld);
    await this.#each(running, (sandbox) => sandbox.power.hold(), 'hold');
  }

  async #release(): Promise<void> {
    if (this.#isOver) this.#options.logger.info('a control plane answers again; the VMs go on');
    this.#isOver = false;
    const held = this.#held().filter(({ id }) => !this.#ended.has(id));
    await this.#each(held, (sandbox) => sandbox.power.release(), 'release');
  }

  #held(): HeldSandbox[] {
    return this.#options.registry.live().filter(({ power }) => power.isHeld);
  }

  async #each(
    sandboxes: readonly HeldSandbox[],
    step: (sandbox: HeldSandbox) => Promise<void>,
    name: string,
  ): Promise<void> {
    await Promise.all(
      sandboxes.map((sandbox) =>
        step(sandbox).catch((error) => this.#options.onFault(error, `${name} ${sandbox.id}`)),
      ),
    );
  }
}
