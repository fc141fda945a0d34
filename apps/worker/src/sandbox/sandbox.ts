import {
  type CancelReason,
  type EndReason,
  isActive,
  type SandboxState,
  ServiceError,
  type WorkerSandbox,
} from '@svc/contract';
import type { Microvm } from '@svc/microvm';
import { Mutex, settledWithin } from '@svc/service-kit/concurrency';
import { type Clock, timestamp } from '../clock.ts';
import type { SandboxAgent } from '../creating/agent-starter.ts';
import type { Reservation } from '../vms/capacity/capacity.ts';
import { Activity } from './activity.ts';
import { cancelFrame } from './cancel-frame.ts';
import { type Connection, Connections } from './connections.ts';
import { Ending } from './ending.ts';
import type { SandboxLabels } from './labels.ts';
import type { Placement } from './placement.ts';
import { Power } from './power.ts';
import { factsOf, type Life, labelsOf, recordOf, type VmFacts } from './record.ts';
import { StateMachine } from './state-machine.ts';

export interface SandboxOptions {
  readonly placement: Placement;
  readonly facts: VmFacts;
  readonly clock: Clock;
  /** Called after every change of state, with the record as it is then. */
  readonly onChange: (record: WorkerSandbox) => void;
  /** Called with failures that no caller waits for. */
  readonly onFault: (error: unknown, what: string) => void;
  /** Where the life stands, for a sandbox that is adopted or known only as destroyed. */
  readonly from?: {
    readonly state: SandboxState;
    readonly revision: number;
    readonly runningAt?: string | undefined;
    readonly endReason?: EndReason | undefined;
    readonly agentExitCode?: number | undefined;
  };
}

const CPU_READ_MS = 1_000;

/**
 * One sandbox: its state, its VM, and who uses it. Invariants:
 * it has a VM exactly from `booting` until it is destroyed; once it has an end reason it only ever moves
 * towards `destroyed`; the state that a restart would find (the VM's labels) is written before it is shown.
 */
export class Sandbox {
  readonly placement: Placement;
  readonly activity: Activity;
  readonly connections = new Connections();
  readonly power: Power;
  /** Monotonic milliseconds at which the maximum lifetime ends. */
  readonly lifetimeEndsAt: number;
  /** Whether attached clients have been told that the lifetime is about to end. */
  warned = false;
  /** What goes on with the agent of this sandbox, once it has been started. */
  agent: SandboxAgent | undefined;

  readonly #options: SandboxOptions;
  readonly #machine: StateMachine;
  readonly #labelWrites = new Mutex();
  readonly #ended = new AbortController();
  readonly #ending: Ending;
  #facts: VmFacts;
  #provisioning: Promise<unknown> = Promise.resolve();
  #vm: Microvm | undefined;
  #reservation: Reservation | undefined;
  #revision: number;
  #runningAt: string | undefined;
  #endReason: EndReason | undefined;
  #endedAt: number | undefined;
  #cpuSeconds = 0;
  #agentExitCode: number | undefined;

  constructor(options: SandboxOptions) {
    const { placement, clock, from } = options;
    this.#options = options;
    this.placement = placement;
    this.activity = new Activity(clock);
    this.lifetimeEndsAt = clock.monotonic() + (placement.lifetimeEndsAt - clock.wall());
    this.#machine = new StateMachine(from?.state ?? 'creating');
    this.#revision = from?.revision ?? 0;
    this.#runningAt = from?.runningAt;
    this.#endReason = from?.endReason;
    this.#agentExitCode = from?.agentExitCode;
    if (from?.state === 'destroyed') this.#endedAt = clock.wall();
    this.#facts = options.facts;
    this.power = new Power(this);
    this.#ending = new Ending(this, options.onFault);
  }

  get id(): string {
    return this.placement.vmId;
  }

  get state(): SandboxState {
    return this.#machine.state;
  }

  /** Rises with every change of state, across restarts too. */
  get revision(): number {
    return this.#revision;
  }

  get isLive(): boolean {
    return isActive(this.state);
  }

  /** Set from the moment the sandbox has begun to end. */
  get endReason(): EndReason | undefined {
    return this.#endReason;
  }

  /** Wall milliseconds at which it was destroyed. */
  get endedAt(): number | undefined {
    return this.#endedAt;
  }

  /** Whether a teardown is under way right now. */
  get isEnding(): boolean {
    return this.#ending.active;
  }

  /** Aborts when the sandbox begins to end; everything done for it listens. */
  get signal(): AbortSignal {
    return this.#ended.signal;
  }

  get vm(): Microvm | undefined {
    return this.#vm;
  }

  /** @throws ServiceError `sandbox_not_running` unless it is running and not about to end. */
  runningVm(): Microvm {
    if (this.#vm === undefined || this.state !== 'running' || this.#endReason !== undefined) {
      throw new ServiceError('sandbox_not_running');
    }
    return this.#vm;
  }

  /** @throws ServiceError `sandbox_not_running` when it has no VM (any more) or is about to end. */
  assignedVm(): Microvm {
    if (this.#vm === undefined || this.#endReason !== undefined) {
      throw new ServiceError('sandbox_not_running');
    }
    return this.#vm;
  }

  /** Attaches a client, which keeps the sandbox from being idle; the returned function detaches it. */
  connect(connection: Connection): () => void {
    const endActivity = this.activity.begin();
    const detach = this.connections.attach(connection);
    return () => {
      detach();
      endActivity();
    };
  }

  /** Tells the attached clients to wind up; answers how many were told. Destroys nothing. */
  async cancel(reason: CancelReason): Promise<number> {
    return (await this.agent?.announce(cancelFrame(reason))) ?? 0;
  }

  /** Whether it has come to run, and so holds something worth bringing home. */
  get hasRun(): boolean {
    return this.#runningAt !== undefined;
  }

  /** Of a one-shot agent that has ended. */
  get agentExitCode(): number | undefined {
    return this.#agentExitCode;
  }

  /** Notes that the one-shot agent has ended, for a restart too, and reports it. The first code stays. */
  async noteAgentExit(exitCode: number): Promise<void> {
    if (this.#agentExitCode !== undefined) return;
    this.#agentExitCode = exitCode;
    // A full disk keeps it from being found after a restart, not from being reported.
    await this.#writeLabels(this.state).finally(() => this.#changed());
  }

  /** Settles, never rejects, when no VM is being made for this sandbox. */
  get provisioned(): Promise<unknown> {
    return this.#provisioning;
  }

  /** Runs what makes the VM. A teardown waits until it has settled, so it must stop when `signal` aborts. */
  provision<T>(work: () => Promise<T>): Promise<T> {
    const result = work();
    this.#provisioning = result.catch(() => undefined);
    return result;
  }

  /** Gives the sandbox its VM and the room it holds. A VM process that dies from now on ends the sandbox. */
  attach(vm: Microvm, reservation: Reservation): void {
    this.#vm = vm;
    this.#reservation = reservation;
    this.#facts = factsOf(vm);
    void vm.exited.then(() => {
      if (!this.isLive) return;
      const reason = this.#runningAt === undefined ? 'boot_failed' : 'worker_lost';
      this.end(reason).catch((error) => this.#options.onFault(error, 'clean up after a dead VM'));
    });
  }

  /**
   * Moves to another state: checks, writes the labels, then shows it.
   * @throws IllegalMoveError; ServiceError `sandbox_not_running` when the sandbox began to end meanwhile
   */
  async transition(to: Exclude<SandboxState, 'destroyed'>): Promise<void> {
    this.#machine.assertCanMove(to);
    if (to === 'running') this.#runningAt ??= timestamp(this.#options.clock.wall());
    await this.#persist(to);
    if (this.#endReason !== undefined) throw new ServiceError('sandbox_not_running');
    this.#machine.move(to);
    if (to === 'running') this.activity.touch();
    this.#changed();
  }

  /**
   * Ends the sandbox from whatever state it is in; settles when all it held is released.
   * The first reason given stays. May be called again, also after a failure.
   */
  async end(reason: EndReason): Promise<void> {
    if (!this.isLive) return;
    this.#endReason ??= reason;
    this.#ended.abort(new ServiceError('sandbox_not_running'));
    await this.#ending.run();
  }

  /** First half of a teardown: shows `stopping` where the sandbox was running, and notes the reason for a restart. */
  async beginStopping(): Promise<void> {
    if (this.state === 'running') {
      this.#machine.move('stopping');
      this.#changed();
    }
    this.connections.closeAll(1001, 'sandbox destroyed');
    await this.#writeLabels(this.state);
  }

  /** Last step of a teardown: the VM is gone, so is the room it held. */
  finish(): void {
    this.#vm = undefined;
    this.#reservation?.release();
    this.#endedAt = this.#options.clock.wall();
    this.connections.closeAll(1001, 'sandbox destroyed');
    this.#machine.move('destroyed');
    this.#changed();
  }

  /** Reads the VM's CPU time; keeps the last value known when it does not answer in time. */
  async refreshCpuSeconds(): Promise<void> {
    const vm = this.#vm;
    if (vm === undefined) return;
    const read = vm.cpuSeconds().then(
      (seconds) => {
        this.#cpuSeconds = Math.max(this.#cpuSeconds, seconds);
      },
      () => undefined,
    );
    await settledWithin(read, CPU_READ_MS);
  }

  /** The record as it is now. */
  record(): WorkerSandbox {
    return recordOf(this.#life(this.state), this.#facts, {
      active_connections: this.connections.count,
      cpu_seconds: this.#cpuSeconds,
    });
  }

  /** What the VM's labels say when this sandbox is in `state`. */
  labels(state: SandboxState): SandboxLabels {
    return labelsOf(this.#life(state));
  }

  #life(state: SandboxState): Life {
    return {
      placement: this.placement,
      state,
      revision: this.#revision,
      runningAt: this.#runningAt,
      endedAt: this.#endedAt === undefined ? undefined : timestamp(this.#endedAt),
      endReason: this.#endReason,
      agentExitCode: this.#agentExitCode,
    };
  }

  /** Writes what a restart must find before the state is shown. */
  async #persist(to: SandboxState): Promise<void> {
    // A restart treats configuring and booting alike, so one label serves both.
    if (to === 'booting') return;
    try {
      await this.#writeLabels(to);
    } catch (error) {
      // Without it a restart would take the sandbox for a half-made one. But whether it is paused, a restart
      // sees from the VM itself: a full disk must not keep anybody from pausing and resuming.
      if (this.state === 'booting') throw error;
      this.#options.onFault(error, `note that ${this.id} is ${to}`);
    }
  }

  async #writeLabels(state: SandboxState): Promise<void> {
    // In turn, and read when written: a late write can never take back an end reason.
    await this.#labelWrites.run(async () => this.#vm?.label(this.labels(state)));
  }

  #changed(): void {
    this.#revision += 1;
    this.#options.onChange(this.record());
  }
}
