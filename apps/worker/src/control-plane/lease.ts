import { WORKER_TIMES } from '@svc/contract';
import { Wakeable } from '@svc/service-kit/concurrency';
import type { Clock } from '../clock.ts';
import type { WorkerLogger } from '../logger.ts';
import type { LeaseFile } from './lease-file.ts';

/** Sandboxes that are made meanwhile, and failed attempts, are seen to this often. */
const HELD_POLL_MS = 1_000;

/** A sandbox whose VM can be held. */
interface HeldSandbox {
  readonly id: string;
  /** Whether it runs a session, which may go on elsewhere long before the worker is given up. */
  readonly isSession: boolean;
  /** Whether it may not run even with a lease. */
  readonly isQuarantined: boolean;
  readonly connections: { closeAll(code: number, reason: string): void };
  readonly power: {
    readonly isHeld: boolean;
    readonly mayBeStopped: boolean;
    hold(): Promise<void>;
    /** Does nothing if the control plane has ended the sandbox. */
    release(): Promise<void>;
  };
}

/** For how long VMs may run after a report that the control plane has accepted, in ms. */
export interface LeaseTimes {
  readonly sandboxMs: number;
  /** Of the VM of a session. At most `sandboxMs`. */
  readonly sessionMs: number;
}

export const LEASE_TIMES: LeaseTimes = {
  sandboxMs: WORKER_TIMES.sandboxLeaseMs,
  sessionMs: WORKER_TIMES.sessionLeaseMs,
};

export interface LeaseOptions {
  readonly file: LeaseFile;
  /** Monotonic time of the last renewal in ms: of an earlier process, or now. */
  readonly renewedAtMs: number;
  readonly times: LeaseTimes;
  readonly registry: { live(): HeldSandbox[] };
  readonly clock: Clock;
  readonly logger: WorkerLogger;
  readonly onFault: (error: unknown, action: string) => void;
}

/**
 * The right of this worker to run its VMs, which each report renews that a control plane accepts. When it ends, the VMs
 * are held and their clients disconnected, because the control plane is about to give the worker up. The right to run
 * sessions ends sooner: they go on elsewhere as soon as a client cannot reach them here. When the lease is renewed,
 * the VMs go on as if nothing had happened, except those that the control plane has ended meanwhile, and those in
 * quarantine, which never have this right.
 */
export class Lease {
  readonly #options: LeaseOptions;
  readonly #wakeable = new Wakeable();
  #renewedAt: number;
  #isOver = false;
  #saving: Promise<void> | undefined;

  constructor(options: LeaseOptions) {
    this.#options = options;
    this.#renewedAt = options.renewedAtMs;
  }

  /**
   * Renews the lease. The release of what the answer orders to destroy must have been forbidden before.
   * @param sentAtMs monotonic time at which the accepted report was sent
   */
  renew(sentAtMs: number): void {
    this.#renewedAt = Math.max(this.#renewedAt, sentAtMs);
    if (this.#isOver || this.#quarantineChanged()) this.#wakeable.wake();
    this.#save();
  }

  /** Holds and releases the VMs until `signal` aborts. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, times } = this.#options;
    while (!signal.aborted) {
      const age = clock.monotonic() - this.#renewedAt;
      this.#note(age >= times.sessionMs);
      const mayRun = (sandbox: HeldSandbox) =>
        !sandbox.isQuarantined && age < this.#leaseOf(sandbox);
      await this.#hold((sandbox) => !mayRun(sandbox));
      await this.#release(mayRun);
      const isSettled = !this.#isOver && this.#held().length === 0;
      await this.#wakeable.wait(isSettled ? times.sessionMs - age : HELD_POLL_MS, signal);
    }
  }

  /** Resolves when the last renewal has been saved. */
  async saved(): Promise<void> {
    await this.#saving;
  }

  #leaseOf({ isSession }: HeldSandbox): number {
    const { sandboxMs, sessionMs } = this.#options.times;
    return isSession ? sessionMs : sandboxMs;
  }

  /** Without the last renewals, the lease of a later process ends sooner. */
  #save(): void {
    this.#saving ??= this.#options.file
      .save(this.#renewedAt)
      .catch((error) => this.#options.onFault(error, 'save when the lease was renewed'))
      .finally(() => {
        this.#saving = undefined;
      });
  }

  #note(isOver: boolean): void {
    if (isOver === this.#isOver) return;
    this.#isOver = isOver;
    const { logger } = this.#options;
    if (isOver)
      logger.error('no control plane answers; the VMs of sessions are held, the others soon');
    else logger.info('a control plane answers again; the VMs go on');
  }

  #quarantineChanged(): boolean {
    const { registry } = this.#options;
    return registry.live().some(({ isQuarantined, power }) => isQuarantined !== power.isHeld);
  }

  async #hold(isOver: (sandbox: HeldSandbox) => boolean): Promise<void> {
    const ended = this.#options.registry.live().filter(isOver);
    const running = ended.filter(({ power }) => !power.isHeld);
    await this.#each(running, (sandbox) => sandbox.power.hold(), 'hold');
    // Also those that were about to attach when their VM was held.
    for (const { connections } of ended) connections.closeAll(1011, 'upstream unavailable');
  }

  async #release(mayRun: (sandbox: HeldSandbox) => boolean): Promise<void> {
    const held = this.#held().filter(mayRun);
    await this.#each(held, (sandbox) => sandbox.power.release(), 'release');
  }

  #held(): HeldSandbox[] {
    const { registry } = this.#options;
    return registry.live().filter(({ power }) => power.isHeld || power.mayBeStopped);
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
