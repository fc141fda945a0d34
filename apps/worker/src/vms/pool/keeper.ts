import { isServiceError } from '@svc/contract';
import type { ImageInfo, Microvm } from '@svc/microvm';
import { backoffMs, sleep, Wakeable, withDeadline } from '@svc/service-kit/concurrency';
import type { WorkerLogger } from '../../logger.ts';
import { POOL_LABELS } from '../../sandbox/labels.ts';
import type { Capacity } from '../capacity/capacity.ts';
import type { VmMaker } from '../vm-maker.ts';
import type { Foreground } from './foreground.ts';
import { discard, type Pool } from './pool.ts';

export interface PoolKeeperOptions {
  readonly pool: Pool;
  readonly maker: VmMaker;
  readonly capacity: Capacity;
  readonly foreground: Foreground;
  readonly images: () => Promise<ImageInfo[]>;
  /** Warms up the agent runtime of an idle VM. */
  readonly warmUp: (vm: Microvm, signal: AbortSignal) => Promise<void>;
  readonly logger: WorkerLogger;
  readonly pollMs?: number;
  /** For how long it yields to callers before it makes a VM all the same, while one tenant uses the service or several do. */
  readonly yieldMs?: { readonly alone: number; readonly shared: number };
  readonly firstBackoffMs?: number;
}

const POLL_MS = 5_000;
const PAUSE_MS = 100;
/**
 * Alone, about as long as a restore takes on an emulated processor. With others, a tenant that creates all the time must not keep
 * the pool empty for them.
 */
const YIELD_MS = { alone: 2_000, shared: 300 };
const FIRST_BACKOFF_MS = 1_000;
const MAX_BACKOFF_MS = 60_000;
const RESTORE_MS = 120_000;
const WARM_UP_MS = 10_000;
const IDLE_HOSTNAME = 'idle';

/**
 * Keeps the pool at its size, in the background: makes one VM at a time, when no caller waits for a create or after a
 * while, with a backoff after failures. Destroys idle VMs when memory is short.
 */
export class PoolKeeper {
  readonly #options: PoolKeeperOptions;
  readonly #wakeable = new Wakeable();
  #failures = 0;

  constructor(options: PoolKeeperOptions) {
    this.#options = options;
  }

  /** Checks the pool now rather than at the next poll. */
  wake(): void {
    this.#wakeable.wake();
  }

  /** Runs until `signal` aborts; never rejects. Leaves the VMs in the pool. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#round(signal);
      await this.#wakeable.wait(this.#options.pollMs ?? POLL_MS, signal);
    }
  }

  async #round(signal: AbortSignal): Promise<void> {
    const { pool, capacity, images, logger, firstBackoffMs } = this.#options;
    try {
      const known = await images();
      for (const stale of pool.removeStale(known)) await discard(stale);
      if (capacity.memoryIsShort) {
        await this.#evict();
        return;
      }
      for (const image of known) {
        while (image.ready && pool.missing(image.template) > 0 && !signal.aborted) {
          await this.#yield(signal);
          await this.#fill(image, signal);
        }
      }
      this.#failures = 0;
    } catch (error) {
      if (signal.aborted) return;
      // A full machine is not an error: the next poll checks again.
      if (isServiceError(error, 'no_capacity')) return;
      logger.warn({ err: error }, 'cannot fill the pool; retrying later');
      this.#failures += 1;
      const baseMs = firstBackoffMs ?? FIRST_BACKOFF_MS;
      await sleep(backoffMs(this.#failures, { baseMs, maxMs: MAX_BACKOFF_MS }), signal);
      this.#wakeable.wake();
    }
  }

  /** Gives way to callers. There may be some all the time: then the pool would never be filled again. */
  async #yield(signal: AbortSignal): Promise<void> {
    const { foreground, pool, yieldMs = YIELD_MS } = this.#options;
    const deadline = withDeadline(signal, pool.isShared ? yieldMs.shared : yieldMs.alone);
    await foreground.idle(deadline);
    // A create has work left when the VM is ready, and another create may follow.
    await sleep(PAUSE_MS, signal);
    await foreground.idle(deadline);
  }

  async #fill(image: ImageInfo, signal: AbortSignal): Promise<void> {
    const { pool, maker, logger } = this.#options;
    const deadline = withDeadline(signal, RESTORE_MS);
    deadline.throwIfAborted();
    const made = await maker.make({ image, size: {} }, deadline);
    try {
      // Everything is slow the first time in a restored guest: done here, no caller waits for it.
      await this.#warmUp(made.vm, deadline);
      await made.vm.personalize({ hostname: IDLE_HOSTNAME, env: {} }, deadline);
      await made.vm.exec({ command: 'true', onOutput: () => undefined }, deadline);
      await made.vm.label(POOL_LABELS);
    } catch (error) {
      await discard(made).catch((fault) =>
        logger.error({ err: fault, vm: made.vm.id }, 'cannot discard a VM that was not ready'),
      );
      throw error;
    }
    if (!pool.put(made)) await discard(made);
  }

  /** A VM whose runtime does not answer still works as a sandbox; the start of an agent in it reports the failure. */
  async #warmUp(vm: Microvm, signal: AbortSignal): Promise<void> {
    const { warmUp, logger } = this.#options;
    await warmUp(vm, withDeadline(signal, WARM_UP_MS)).catch((error) => {
      signal.throwIfAborted();
      logger.warn(
        { err: error, template: vm.template },
        'the agent runtime of an idle VM does not respond',
      );
    });
  }

  async #evict(): Promise<void> {
    const { pool, logger } = this.#options;
    const evicted = pool.evict();
    if (evicted === undefined) return;
    logger.warn({ template: evicted.vm.template }, 'low on memory; destroying an idle VM');
    await discard(evicted);
  }
}
