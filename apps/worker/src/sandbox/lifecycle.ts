import {
  type EndReason,
  isActive,
  type SandboxState,
  ServiceError,
  type UsageCounters,
  type WorkerSandbox,
} from '@svc/contract';
import type { Microvm } from '@svc/microvm';
import { Mutex, settledWithin } from '@svc/service-kit/concurrency';
import { type Clock, timestamp } from '../clock.ts';
import type { Activity } from './activity.ts';
import type { Assignment } from './assignment.ts';
import type { Connections } from './connections.ts';
import { type Progress, sandboxLabels, type VmLabels } from './labels.ts';
import { factsOf, recordOf, type VmFacts } from './record.ts';
import { StateMachine } from './state-machine.ts';

/** A VM with the capacity that is reserved for it. Its owner has to destroy the one and release the other. */
export interface ReservedVm {
  readonly vm: Microvm;
  readonly reservation: { release(): void };
}

export interface LifecycleOptions {
  readonly assignment: Assignment;
  /** Reported as long as there is no VM. */
  readonly facts: VmFacts;
  readonly activity: Activity;
  readonly connections: Connections;
  readonly clock: Clock;
  /** Called after every change, with the record as it is then. */
  readonly onChange: (record: WorkerSandbox) => void;
  /** Called with failures that no caller waits for. */
  readonly onFault: (error: unknown, action: string) => void;
  /** Progress so far. */
  readonly from: Progress;
}

const CPU_READ_MS = 1_000;

/**
 * The state of one sandbox, with its VM. Invariants: it has a VM exactly from `booting` until it is destroyed; once it
 * has an end reason it only moves towards `destroyed`; the VM's labels, where a restart finds the state, are
 * written before the state is shown.
 */
export class Lifecycle {
  readonly assignment: Assignment;
  readonly #options: LifecycleOptions;
  readonly #machine: StateMachine;
  readonly #labelWrites = new Mutex();
  readonly #ending = new AbortController();
  readonly #progress: Omit<Progress, 'state'>;
  /** The state that the labels show. */
  #labelled: SandboxState;
  #facts: VmFacts;
  #held: ReservedVm | undefined;
  /** When it was destroyed, by both clocks. */
  #ended: { readonly wall: number; readonly monotonic: number } | undefined;
  #cpuSeconds = 0;
  /** The time for which it existed; undefined until it ends. */
  #wallMs: number | undefined;

  constructor(options: LifecycleOptions) {
    const { state, ...progress } = options.from;
    this.#options = options;
    this.assignment = options.assignment;
    this.#machine = new StateMachine(state);
    this.#progress = progress;
    this.#labelled = state;
    this.#facts = options.facts;
  }

  get state(): SandboxState {
    return this.#machine.state;
  }

  get isLive(): boolean {
    return isActive(this.state);
  }

  get endReason(): EndReason | undefined {
    return this.#progress.end_reason;
  }

  /** Monotonic milliseconds at which the sandbox was destroyed. */
  get endedAt(): number | undefined {
    return this.#ended?.monotonic;
  }

  /** Whether it has ever been running. */
  get hasRun(): boolean {
    return this.#progress.running_at !== undefined;
  }

  /** Whether its workspace is in the VM, also by an earlier worker process. */
  get workspaceIsLoaded(): boolean {
    return this.#progress.workspace_loaded === true;
  }

  /** Whether the one-shot agent has exited. */
  get agentHasExited(): boolean {
    return this.#progress.agent_exit_code !== undefined;
  }

  /** Whether the ledger, which was restored, does not know the sandbox. */
  get isQuarantined(): boolean {
    return this.#progress.quarantined === true;
  }

  /** Aborts when the sandbox begins to end. */
  get signal(): AbortSignal {
    return this.#ending.signal;
  }

  get vm(): Microvm | undefined {
    return this.#held?.vm;
  }

  /** Whether the sandbox is in `state` and not about to end. */
  isIn(state: SandboxState): boolean {
    return this.state === state && this.endReason === undefined;
  }

  /** @throws ServiceError `sandbox_not_running` unless it has a VM, is in `state` and is not about to end. */
  vmIn(state: 'running' | 'paused'): Microvm {
    if (!this.isIn(state)) throw new ServiceError('sandbox_not_running');
    return this.assignedVm();
  }

  /** @throws ServiceError `sandbox_not_running` when it has no VM, or is about to end. */
  assignedVm(): Microvm {
    if (this.vm === undefined || this.endReason !== undefined) {
      throw new ServiceError('sandbox_not_running');
    }
    return this.vm;
  }

  /** Takes over a VM. */
  attach(held: ReservedVm): void {
    this.#held = held;
    this.#facts = factsOf(held.vm);
  }

  /**
   * Moves to another state: checks, writes the labels, then shows it.
   * @throws IllegalMoveError; ServiceError `sandbox_not_running` when the sandbox began to end in the meantime
   */
  async transition(to: Exclude<SandboxState, 'destroyed'>): Promise<void> {
    this.#machine.assertCanMove(to);
    if (to === 'running') await this.#noteFirstRun();
    await this.#persist(to);
    if (this.endReason !== undefined) throw new ServiceError('sandbox_not_running');
    this.#machine.move(to);
    if (to === 'running') this.#options.activity.touch();
    this.#changed();
  }

  /** Notes that the one-shot agent has exited, in the labels too, and reports it. Later codes are ignored. */
  async noteAgentExit(exitCode: number): Promise<void> {
    if (this.agentHasExited) return;
    this.#progress.agent_exit_code = exitCode;
    // With a full disk a restart does not find the code, but it is reported all the same.
    await this.#rewriteLabels().finally(() => this.#changed());
  }

  /**
   * Notes in the labels that the workspace is in the VM. Rejects when they cannot be written: a restart would load it
   * again, over what was changed since.
   */
  async noteWorkspaceLoaded(): Promise<void> {
    this.#progress.workspace_loaded = true;
    await this.#rewriteLabels();
  }

  /** Notes, in the labels too, whether the sandbox is in quarantine. */
  async setQuarantined(isQuarantined: boolean): Promise<void> {
    this.#progress.quarantined = isQuarantined;
    await this.#rewriteLabels();
  }

  /**
   * Marks the sandbox as about to end and aborts everything done for it, with `error`, default `sandbox_not_running`.
   * The first reason stays.
   */
  beginToEnd(reason: EndReason, error = new ServiceError('sandbox_not_running')): void {
    this.#progress.end_reason ??= reason;
    this.#ending.abort(error);
  }

  /** First step of a teardown: shows `stopping` if the sandbox was running, and labels the VM with the reason. */
  async stop(): Promise<void> {
    if (this.state === 'running') {
      this.#machine.move('stopping');
      this.#changed();
    }
    this.#closeConnections();
    await this.#writeLabels(this.state);
  }

  /** Last step of a teardown: the VM is gone, so its capacity is released. */
  finish(): void {
    this.#held?.reservation.release();
    this.#held = undefined;
    const { clock } = this.#options;
    this.#ended = { wall: clock.wall(), monotonic: clock.monotonic() };
    this.#wallMs = this.#wallMsNow();
    this.#closeConnections();
    this.#machine.move('destroyed');
    this.#changed();
  }

  /** Reads the VM's CPU time; keeps the last known value when the VM does not answer in time. */
  async refreshCpuSeconds(): Promise<void> {
    if (this.vm === undefined) return;
    const read = this.vm.cpuSeconds().then(
      (seconds) => {
        this.#cpuSeconds = Math.max(this.#cpuSeconds, seconds);
      },
      () => undefined,
    );
    await settledWithin(read, CPU_READ_MS);
  }

  /** The times that count as usage: since the sandbox first ran. Undefined before that. */
  async measure(): Promise<Pick<UsageCounters, 'cpu_ms' | 'wall_ms'> | undefined> {
    if (!this.hasRun) return undefined;
    await this.refreshCpuSeconds();
    const cpuMs = this.#cpuSeconds * 1000 - (this.#progress.metered_from?.cpu_ms ?? 0);
    const wallMs = this.#wallMs ?? this.#wallMsNow();
    return { cpu_ms: Math.max(0, Math.round(cpuMs)), wall_ms: Math.max(0, Math.round(wallMs)) };
  }

  record(): WorkerSandbox {
    return recordOf(this.assignment, this.#progressIn(this.state), {
      ...this.#facts,
      ...this.#end(),
      active_connections: this.#options.connections.count,
      cpu_seconds: this.#cpuSeconds,
    });
  }

  /** The labels of the VM while the sandbox is in `state`. */
  labels(state: SandboxState): VmLabels {
    return sandboxLabels(this.assignment, this.#progressIn(state));
  }

  /** What a record says about the end. */
  #end(): Pick<WorkerSandbox, 'ended_at' | 'end_age_ms'> {
    if (this.#ended === undefined) return {};
    const { wall, monotonic } = this.#ended;
    const age = this.#options.clock.monotonic() - monotonic;
    return { ended_at: timestamp(wall), end_age_ms: Math.round(age) };
  }

  async #noteFirstRun(): Promise<void> {
    if (this.hasRun) return;
    await this.refreshCpuSeconds();
    const { clock } = this.#options;
    this.#progress.metered_from = { cpu_ms: this.#cpuSeconds * 1000, at_ms: clock.monotonic() };
    this.#progress.running_at = timestamp(clock.wall());
  }

  /** Milliseconds since it first ran. */
  #wallMsNow(): number {
    const { clock } = this.#options;
    const { metered_from: from, running_at: runningAt } = this.#progress;
    if (from !== undefined) return clock.monotonic() - from.at_ms;
    // Labels of an earlier version have no monotonic time.
    return runningAt === undefined ? 0 : clock.wall() - Date.parse(runningAt);
  }

  #progressIn(state: SandboxState): Progress {
    return { ...this.#progress, state };
  }

  /** Writes the labels for a restart, before the state is shown. */
  async #persist(to: SandboxState): Promise<void> {
    // A restart treats configuring and booting alike, so one label serves both.
    if (to === 'booting') return;
    try {
      await this.#writeLabels(to);
    } catch (error) {
      // Without this label a restart would take the sandbox for a half-made one. Whether it is paused, a restart
      // sees from the VM itself: a full disk must not prevent pause and resume.
      if (this.state === 'booting') throw error;
      this.#options.onFault(error, `record that ${this.assignment.vm_id} is ${to}`);
    }
  }

  async #writeLabels(state: SandboxState): Promise<void> {
    // One after the other, and composed when written: a late write can never remove an end reason.
    await this.#labelWrites.run(async () => {
      await this.vm?.label(this.labels(state));
      this.#labelled = state;
    });
  }

  /** Writes the labels in the state that they show, because they may show the next one already. */
  async #rewriteLabels(): Promise<void> {
    await this.#labelWrites.run(async () => this.vm?.label(this.labels(this.#labelled)));
  }

  #closeConnections(): void {
    this.#options.connections.closeAll(1001, 'sandbox destroyed');
  }

  #changed(): void {
    this.#progress.revision += 1;
    this.#options.onChange(this.record());
  }
}
