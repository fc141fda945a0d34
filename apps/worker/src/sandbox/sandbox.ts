import {
  type CancelReason,
  type EndReason,
  type SandboxState,
  ServiceError,
  type UsageCounters,
  type WorkerSandbox,
} from '@svc/contract';
import type { Microvm } from '@svc/microvm';
import { runEveryStep } from '@svc/service-kit/concurrency';
import type { Clock } from '../clock.ts';
import { Activity } from './activity.ts';
import type { SandboxAgent } from './agent.ts';
import type { Assignment } from './assignment.ts';
import { Connections } from './connections.ts';
import { Ending } from './ending.ts';
import type { Progress, VmLabels } from './labels.ts';
import { Lifecycle, type ReservedVm } from './lifecycle.ts';
import { Power } from './power.ts';
import type { VmFacts } from './record.ts';
import { UsageCounter } from './usage-counter.ts';
import type { MountedWorkspace } from './workspace.ts';

export interface SandboxOptions {
  readonly assignment: Assignment;
  /** Reported as long as there is no VM. */
  readonly facts: VmFacts;
  readonly clock: Clock;
  /** Called after every change of state, with the record as it is then. */
  readonly onChange: (record: WorkerSandbox) => void;
  /** Called before the VM is destroyed, which then waits for a moment. Never rejects. */
  readonly beforeDestroy: (sandbox: Sandbox) => Promise<void>;
  /** Called with failures that no caller waits for. */
  readonly onFault: (error: unknown, action: string) => void;
  /** Progress so far, in an earlier attempt or an earlier worker process. */
  readonly from: Progress;
}

/** How a new sandbox gets its VM, its workspace and its agent. */
export interface BringUpSteps {
  /** Makes a VM with these labels; must stop when the sandbox's signal aborts. */
  readonly acquire: (labels: VmLabels) => Promise<ReservedVm>;
  /** Mounts the workspace, where there is one. */
  readonly mountWorkspace: (vm: Microvm) => MountedWorkspace | undefined;
  /** Starts the agent, where there is one. */
  readonly startAgent?: (vm: Microvm) => Promise<SandboxAgent>;
}

/** What an earlier worker process left in a VM. */
export interface LeftBehind {
  readonly agent: SandboxAgent | undefined;
  readonly workspace: MountedWorkspace | undefined;
}

/** One sandbox: its lifecycle, its workspace, its agent, its clients and its activity. */
export class Sandbox {
  readonly activity: Activity;
  readonly connections: Connections;
  readonly power: Power;
  /** What its agent uses. */
  readonly usage = new UsageCounter();
  /** Monotonic milliseconds at which the maximum lifetime ends. */
  readonly lifetimeEndsAt: number;
  readonly #onFault: SandboxOptions['onFault'];
  readonly #lifecycle: Lifecycle;
  readonly #ending: Ending;
  #agent: SandboxAgent | undefined;
  #workspace: MountedWorkspace | undefined;
  /** Settles when the VM may be used: its workspace is loaded. */
  #usable: Promise<void> = Promise.resolve();
  #provisioning: Promise<unknown> = Promise.resolve();

  constructor(options: SandboxOptions) {
    const { assignment, clock, onFault } = options;
    this.#onFault = onFault;
    this.activity = new Activity(clock);
    this.connections = new Connections(this.activity);
    this.lifetimeEndsAt = clock.monotonic() + (assignment.lifetime_ends_at - clock.wall());
    const { activity, connections } = this;
    this.#lifecycle = new Lifecycle({ ...options, activity, connections });
    this.power = new Power(this.#lifecycle, {
      usable: () => this.#usable,
      beforePause: async () => {
        await this.#agent?.beforePause();
        await this.#workspace?.beforePause();
      },
    });
    this.#ending = new Ending({
      lifecycle: this.#lifecycle,
      agent: () => this.#agent,
      workspace: () => this.#workspace,
      provisioned: () => this.#provisioning,
      powerIdle: () => this.power.idle(),
      beforeDestroy: () => options.beforeDestroy(this),
      onFault,
    });
  }

  get id(): string {
    return this.assignment.vm_id;
  }

  get assignment(): Assignment {
    return this.#lifecycle.assignment;
  }

  /** Whether its agent is that of a session. */
  get isSession(): boolean {
    return this.assignment.placement.agent?.session !== undefined;
  }

  get state(): SandboxState {
    return this.#lifecycle.state;
  }

  get isLive(): boolean {
    return this.#lifecycle.isLive;
  }

  /** Whether it has ever been running, and so may hold state to save. */
  get hasRun(): boolean {
    return this.#lifecycle.hasRun;
  }

  /** Set from the moment the sandbox begins to end. */
  get endReason(): EndReason | undefined {
    return this.#lifecycle.endReason;
  }

  /** Whether a teardown is in progress. */
  get isEnding(): boolean {
    return this.#ending.active;
  }

  /** Monotonic milliseconds at which the sandbox was destroyed. */
  get endedAt(): number | undefined {
    return this.#lifecycle.endedAt;
  }

  /** Whether the one-shot agent has exited, also in an earlier worker process. */
  get agentHasExited(): boolean {
    return this.#lifecycle.agentHasExited;
  }

  /** Whether the ledger does not know it, so that only an operator may end it. */
  get isQuarantined(): boolean {
    return this.#lifecycle.isQuarantined;
  }

  /** Aborts when the sandbox begins to end; all work in it stops then. */
  get signal(): AbortSignal {
    return this.#lifecycle.signal;
  }

  /** The agent, once it has been started. */
  get agent(): SandboxAgent | undefined {
    return this.#agent;
  }

  /** The workspace, once it has been mounted. It may still be loaded. */
  get workspace(): MountedWorkspace | undefined {
    return this.#workspace;
  }

  /** @throws ServiceError `sandbox_not_running` when it has no VM, or is about to end. */
  assignedVm(): Microvm {
    return this.#lifecycle.assignedVm();
  }

  /**
   * Takes a new sandbox from `creating` to `running`. Its workspace is loaded before its agent starts. Without an agent,
   * it is loaded while the sandbox is running, and whoever uses the VM waits for it.
   * @throws the errors of the steps; ServiceError `sandbox_not_running` when the sandbox began to end in the meantime
   */
  async bringUp({ acquire, mountWorkspace, startAgent }: BringUpSteps): Promise<void> {
    await this.#lifecycle.transition('configuring');
    await this.#provision(async () => {
      const held = await acquire(this.#lifecycle.labels('configuring'));
      if (this.isLive) {
        this.#attach(held);
        return;
      }
      // The teardown timed out waiting for this VM and finished without it.
      await runEveryStep([
        { name: 'destroy the VM', run: () => held.vm.destroy() },
        { name: 'release its capacity', run: () => held.reservation.release() },
      ]);
      throw new ServiceError('sandbox_not_running');
    });
    await this.#lifecycle.transition('booting');
    this.#workspace = mountWorkspace(this.assignedVm());
    if (startAgent === undefined) {
      this.#loadInBackground();
    } else {
      await this.#load();
      await this.#provision(async () => {
        this.#agent = await startAgent(this.assignedVm());
      });
    }
    await this.#lifecycle.transition('running');
  }

  /** Takes over the VM, and the agent in it, that an earlier worker process left. */
  adopt(held: ReservedVm, { agent, workspace }: LeftBehind): void {
    this.#agent = agent;
    this.#workspace = workspace;
    this.#attach(held);
    if (this.#lifecycle.workspaceIsLoaded) workspace?.start();
    else this.#loadInBackground();
  }

  /** Notes that the one-shot agent has exited, for a restart too, and reports it. Later codes are ignored. */
  noteAgentExit(exitCode: number): Promise<void> {
    return this.#lifecycle.noteAgentExit(exitCode);
  }

  /** See {@link Lifecycle.setQuarantined}. */
  setQuarantined(isQuarantined: boolean): Promise<void> {
    return this.#lifecycle.setQuarantined(isQuarantined);
  }

  /** Asks the attached clients to wind up; returns how many were asked. Destroys nothing. */
  async cancel(reason: CancelReason): Promise<number> {
    return (await this.#agent?.announce({ type: 'system', event: 'cancel', reason })) ?? 0;
  }

  /**
   * Ends the sandbox from any state; settles when everything it held has been released.
   * The first reason stays. May be called again, also after a failure. Work in progress fails with `error`, default
   * `sandbox_not_running`.
   */
  async end(reason: EndReason, error?: ServiceError): Promise<void> {
    if (!this.isLive) return;
    this.#lifecycle.beginToEnd(reason, error);
    // The guest is stopped, and what it has may not be saved any more.
    if (this.power.isHeld) this.hurryEnd();
    await this.#ending.run();
  }

  /** Makes the end, in progress or to come, save nothing more. */
  hurryEnd(): void {
    this.#ending.hurry();
  }

  /** Reads the VM's CPU time; keeps the last known value when the VM does not answer in time. */
  refreshCpuSeconds(): Promise<void> {
    return this.#lifecycle.refreshCpuSeconds();
  }

  /** See {@link Lifecycle.measure}. */
  measure(): Promise<Pick<UsageCounters, 'cpu_ms' | 'wall_ms'> | undefined> {
    return this.#lifecycle.measure();
  }

  /** The record as it is now. */
  record(): WorkerSandbox {
    return this.#lifecycle.record();
  }

  #loadInBackground(): void {
    this.#load().catch((error) => {
      const failure = error instanceof ServiceError ? error : undefined;
      this.end('boot_failed', failure).catch((fault) =>
        this.#onFault(fault, 'clean up after a workspace that was not loaded'),
      );
    });
  }

  /** Loads the workspace, if there is one. Keeps the sandbox from being idle. */
  #load(): Promise<void> {
    const workspace = this.#workspace;
    if (workspace === undefined) return this.#usable;
    const endActivity = this.activity.begin();
    this.#usable = this.#provision(async () => {
      await workspace.load(this.signal);
      await this.#lifecycle.noteWorkspaceLoaded();
      workspace.start();
    }).finally(endActivity);
    return this.#usable;
  }

  /** Runs work that needs or makes the VM. A teardown waits for it, so it must stop when the signal aborts. */
  #provision(work: () => Promise<void>): Promise<void> {
    const result = work();
    this.#provisioning = result.catch(() => undefined);
    return result;
  }

  /** A VM process that dies from now on ends the sandbox. */
  #attach(held: ReservedVm): void {
    this.#lifecycle.attach(held);
    void held.vm.exited.then(() => {
      if (!this.isLive) return;
      const reason = this.hasRun ? 'worker_lost' : 'boot_failed';
      this.end(reason).catch((error) => this.#onFault(error, 'clean up after a dead VM'));
    });
  }
}
