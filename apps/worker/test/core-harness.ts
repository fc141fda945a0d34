import { setTimeout } from 'node:timers/promises';
import type { WorkerSandbox } from '@svc/contract';
import type { Microvm } from '@svc/microvm';
import type { AgentStarter } from '../src/agents/agent-starter.ts';
import { type Clock, systemClock } from '../src/clock.ts';
import { type CreateDeps, SandboxCreator } from '../src/creating/create.ts';
import { Reaper } from '../src/reaper/reaper.ts';
import { SandboxRegistry } from '../src/sandbox/registry.ts';
import type { Sandbox } from '../src/sandbox/sandbox.ts';
import { Capacity, type CapacityLimits } from '../src/vms/capacity/capacity.ts';
import { Foreground } from '../src/vms/pool/foreground.ts';
import { PoolKeeper, type PoolKeeperOptions } from '../src/vms/pool/keeper.ts';
import { Pool } from '../src/vms/pool/pool.ts';
import { PoolWarmer } from '../src/vms/pool/warmer.ts';
import { VmMaker } from '../src/vms/vm-maker.ts';
import type { MemoryHost } from './memory-host.ts';
import { LIMITS } from './memory-host.ts';
import { silentLogger } from './silent-logger.ts';

export interface CoreHarnessOptions {
  readonly clock?: Clock;
  readonly pool?: Record<string, number>;
  readonly limits?: CapacityLimits;
  readonly onChange?: (record: WorkerSandbox) => void;
  readonly beforeDestroy?: (sandbox: Sandbox) => Promise<void>;
  readonly agents?: AgentStarter;
  readonly mountWorkspace?: CreateDeps['mountWorkspace'];
  readonly warmUp?: (vm: Microvm) => Promise<void>;
  readonly yieldMs?: PoolKeeperOptions['yieldMs'];
}

const NO_AGENTS: AgentStarter = {
  prepare() {
    throw new Error('this harness starts no agents');
  },
};

/** The parts of a worker that create, keep and end sandboxes, without HTTP and without a control plane. */
export class CoreHarness {
  readonly clock: Clock;
  readonly registry: SandboxRegistry;
  readonly capacity: Capacity;
  readonly pool: Pool;
  readonly foreground = new Foreground();
  readonly keeper: PoolKeeper;
  readonly warmer: PoolWarmer;
  readonly creator: SandboxCreator;
  readonly reaper: Reaper;
  readonly faults: unknown[] = [];
  readonly #targets: Map<string, number>;

  constructor(host: MemoryHost, options: CoreHarnessOptions = {}) {
    const clock = options.clock ?? systemClock;
    const onFault = (error: unknown) => this.faults.push(error);
    const images = () => host.images();
    this.clock = clock;
    this.registry = new SandboxRegistry(clock);
    this.capacity = new Capacity(options.limits ?? LIMITS, host);
    this.#targets = new Map(Object.entries(options.pool ?? {}));
    this.pool = new Pool(this.#targets, {
      onTaken: (taken) => {
        this.warmer.leave(taken);
        this.keeper.wake();
      },
      onFault,
    });
    const maker = new VmMaker(host, this.capacity, this.pool, 4);
    this.keeper = new PoolKeeper({
      pool: this.pool,
      maker,
      capacity: this.capacity,
      foreground: this.foreground,
      images,
      warmUp: options.warmUp ?? (async () => undefined),
      logger: silentLogger,
      pollMs: 10,
      firstBackoffMs: 5,
      ...(options.yieldMs === undefined ? {} : { yieldMs: options.yieldMs }),
    });
    this.warmer = new PoolWarmer({
      pool: this.pool,
      foreground: this.foreground,
      images,
      logger: silentLogger,
      pollMs: 5,
    });
    this.creator = new SandboxCreator({
      registry: this.registry,
      pool: this.pool,
      maker,
      foreground: this.foreground,
      images,
      agents: options.agents ?? NO_AGENTS,
      mountWorkspace: options.mountWorkspace ?? (() => undefined),
      clock,
      onChange: options.onChange ?? (() => undefined),
      beforeDestroy: options.beforeDestroy ?? (async () => undefined),
      onFault,
      onCreated: () => undefined,
    });
    this.reaper = new Reaper({ registry: this.registry, clock, onFault });
  }

  /** Runs the pool keeper until the pool is full. */
  async fillPool(): Promise<void> {
    await this.keepPoolWhile(async () => {
      while ([...this.#targets.keys()].some((template) => this.pool.missing(template) > 0)) {
        await setTimeout(1);
      }
    });
  }

  /** Runs the pool keeper for as long as `check` takes. */
  keepPoolWhile(check: () => Promise<void>): Promise<void> {
    return runWhile(this.keeper, check);
  }

  /** Warms up the VMs of the pool for as long as `check` takes. */
  warmPoolWhile(check: () => Promise<void>): Promise<void> {
    return runWhile(this.warmer, check);
  }
}

async function runWhile(
  loop: { run(signal: AbortSignal): Promise<void> },
  check: () => Promise<void>,
): Promise<void> {
  const stop = new AbortController();
  const run = loop.run(stop.signal);
  try {
    await check();
  } finally {
    stop.abort();
    await run;
  }
}
