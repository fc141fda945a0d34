import { LIMITS, type ReportUsageResponse, type UsageSample } from '@svc/contract';
import { Wakeable } from '@svc/service-kit/concurrency';
import type { Clock } from '../clock.ts';
import type { ControlPlaneClient } from '../control-plane/control-plane-client.ts';
import type { WorkerLogger } from '../logger.ts';
import type { SandboxRegistry } from '../sandbox/registry.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';
import { Meter, type Moment } from './meter.ts';
import type { MeterFiles } from './meter-files.ts';

/** With the duration of a report, at most 15 s between a use and its record. */
const SAMPLE_MS = 10_000;

export interface MeteringOptions {
  readonly registry: Pick<SandboxRegistry, 'all'>;
  readonly files: MeterFiles;
  readonly client: Pick<ControlPlaneClient, 'reportUsage'>;
  /** Changes when the machine boots, and the monotonic clock begins again. */
  readonly bootId: string;
  readonly clock: Clock;
  readonly logger: Pick<WorkerLogger, 'warn' | 'debug'>;
  readonly onFault: (error: unknown, action: string) => void;
}

interface Metered {
  readonly meter: Meter;
  /** Undefined for a sandbox whose VM ended while no worker ran. */
  readonly sandbox: Sandbox | undefined;
  /** Set when it was found settled after its end: what an agent left in flight has arrived by the next time. */
  mayGo: boolean;
}

/**
 * Measures what sandboxes use and reports it to the control plane. Counters are saved before they are sent, and kept
 * until the control plane has those of the end of the sandbox, by a later worker process too. While the control plane
 * is away, samples wait; their number is limited by the hours that a sandbox lives.
 */
export class Metering {
  readonly #options: MeteringOptions;
  readonly #wakeable = new Wakeable();
  readonly #metered = new Map<string, Metered>();
  /** Ended sandboxes of which the control plane has everything. */
  readonly #done = new WeakSet<Sandbox>();
  #isLoaded = false;
  /** Whether the last attempt to save failed, which is reported once. */
  #cannotSave = false;

  constructor(options: MeteringOptions) {
    this.#options = options;
  }

  /** Saves new counts now, and reports a sandbox that has ended. */
  wake(): void {
    this.#wakeable.wake();
  }

  /** Samples every ten seconds until `signal` aborts. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    let next = clock.monotonic();
    while (!signal.aborted) {
      const isDue = clock.monotonic() >= next;
      if (isDue) next = clock.monotonic() + SAMPLE_MS;
      await this.pass(isDue, signal);
      await this.#wakeable.wait(Math.max(0, next - clock.monotonic()), signal);
    }
  }

  /**
   * Takes and saves a sample of a sandbox that is about to lose its VM, so that a worker that is killed before the next
   * pass loses none of it. Never rejects.
   */
  async saveSample(sandbox: Sandbox): Promise<void> {
    // Before the first pass, the meters of earlier processes are not known.
    if (!this.#isLoaded) return;
    this.#discover();
    const metered = this.#metered.get(keyOf(sandbox.assignment));
    if (metered === undefined) return;
    const { meter } = metered;
    meter.update(await sandbox.measure(), sandbox.usage.counts);
    meter.sample(this.#now());
    await this.#save(meter);
  }

  /**
   * At the end of the worker, after `run`: takes, saves and reports the last samples within about `ms`. Never rejects.
   * Does nothing in a worker whose start failed: it may not know the sandboxes of the meters.
   */
  async flush(ms: number): Promise<void> {
    if (this.#isLoaded) await this.pass(true, AbortSignal.timeout(ms));
  }

  /** Measures, saves and reports once. Only a pass that `isDue` samples live sandboxes. Never rejects. */
  async pass(isDue: boolean, signal: AbortSignal): Promise<void> {
    const { onFault } = this.#options;
    try {
      await this.#load();
      this.#discover();
      for (const metered of this.#metered.values()) {
        await this.#measure(metered, isDue);
        await this.#save(metered.meter);
      }
      await this.#report(signal);
      if (isDue) await this.#forget();
    } catch (error) {
      onFault(error, 'measure the usage of sandboxes');
    }
  }

  /** Continues the meters of earlier processes. */
  async #load(): Promise<void> {
    if (this.#isLoaded) return;
    const { files, registry, logger } = this.#options;
    const { saved, unreadable } = await files.load();
    const sandboxes = new Map(
      registry.all().map((sandbox) => [keyOf(sandbox.assignment), sandbox]),
    );
    for (const state of saved) {
      const meter = new Meter(state, state);
      const sandbox = sandboxes.get(keyOf(state));
      this.#metered.set(keyOf(state), { meter, sandbox, mayGo: false });
    }
    if (unreadable.length > 0) logger.warn({ files: unreadable }, 'cannot read saved usage');
    this.#isLoaded = true;
  }

  /** Begins to meter sandboxes that have run. */
  #discover(): void {
    for (const sandbox of this.#options.registry.all()) {
      const key = keyOf(sandbox.assignment);
      if (!sandbox.hasRun || this.#metered.has(key) || this.#done.has(sandbox)) continue;
      this.#metered.set(key, { meter: new Meter(sandbox.assignment), sandbox, mayGo: false });
    }
  }

  /** Samples a live sandbox when it is due, one that has ended at once; in between, only takes over its counts. */
  async #measure({ meter, sandbox }: Metered, isDue: boolean): Promise<void> {
    const isLive = sandbox?.isLive ?? false;
    const times = isDue || !isLive ? await sandbox?.measure() : undefined;
    meter.update(times, sandbox?.usage.counts);
    if (isDue || !isLive) meter.sample(this.#now());
  }

  async #save(meter: Meter): Promise<void> {
    if (meter.isSaved) return;
    const { files, onFault } = this.#options;
    const state = meter.state();
    try {
      await files.save(state);
      meter.saved(state);
      this.#cannotSave = false;
    } catch (error) {
      // The counts stay in memory, and are saved and sent later.
      if (!this.#cannotSave) onFault(error, 'save the usage of a sandbox; retrying');
      this.#cannotSave = true;
    }
  }

  async #report(signal: AbortSignal): Promise<void> {
    const { client, logger } = this.#options;
    const due = [...this.#metered.values()].flatMap(({ meter }) => meter.due(this.#now()));
    for (let index = 0; index < due.length; index += LIMITS.usageBatch) {
      const samples = due.slice(index, index + LIMITS.usageBatch);
      try {
        const { refused } = await client.reportUsage(samples, signal);
        this.#settle(samples, refused);
      } catch (err) {
        logger.debug({ err }, 'cannot report usage; retrying');
        return;
      }
    }
  }

  #settle(samples: readonly UsageSample[], refused: ReportUsageResponse['refused']): void {
    for (const { index, reason } of refused) {
      const { vm_id, generation, seq } = samples[index] ?? {};
      const { logger } = this.#options;
      logger.warn({ vmId: vm_id, generation, seq, reason }, 'the control plane refuses usage');
    }
    for (const sample of samples) this.#metered.get(keyOf(sample))?.meter.settle(sample.seq);
  }

  /** Forgets sandboxes that have ended and of which the control plane has everything. */
  async #forget(): Promise<void> {
    for (const [key, metered] of this.#metered) {
      const { meter, sandbox } = metered;
      if (sandbox?.isLive || !meter.isSettled) continue;
      if (metered.mayGo || sandbox === undefined) {
        await this.#options.files.remove({ vm_id: meter.vmId, generation: meter.generation });
        if (sandbox !== undefined) this.#done.add(sandbox);
        this.#metered.delete(key);
      }
      metered.mayGo = true;
    }
  }

  #now(): Moment {
    const { clock, bootId } = this.#options;
    return { wall: clock.wall(), monotonic: clock.monotonic(), bootId };
  }
}

function keyOf({ vm_id, generation }: { readonly vm_id: string; readonly generation: number }) {
  return `${vm_id} ${generation}`;
}
