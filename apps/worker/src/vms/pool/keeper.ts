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
  /** Gets an idle VM's agent runtime ready for its first owner. */
  readonly rehearse: (vm: Microvm, signal: AbortSignal) => Promise<void>;
  readonly logger: WorkerLogger;
  readonly pollMs?: number;
  readonly firstBackoffMs?: number;
}

const POLL_MS = 5_000;
const PAUSE_MS = 100;
const FIRST_BACKOFF_MS = 1_000;
const MAX_BACKOFF_MS = 60_000;
const RESTORE_MS = 120_000;
const REHEARSAL_MS = 10_000;
const IDLE_HOSTNAME = 'idle';

/**
 * Keeps the pool at its size in the background: one VM at a time, never while a caller waits for a create,
 * slower after failures; gives VMs back when memory is short. Ends when its signal aborts.
 */
export class PoolKeeper {
  readonly #options: PoolKeeperOptions;
  readonly #wakeable = new Wakeable();
  #failures = 0;

  constructor(options: PoolKeeperOptions) {
    this.#options = options;
  }

  /** Looks at the pool now rather than at the next poll. */
  wake(): void {
    this.#wakeable.wake();
  }

  /** Runs until `signal` aborts; never rejects. The VMs in the pool stay there. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#round(signal);
      await this.#wakeable.wait(this.#options.pollMs ?? POLL_MS, signal);
    }
  }

  async #round(signal: AbortSignal): Promise<void> {
    const { pool, capacity, foreground, images, logger, firstBackoffMs } = this.#options;
    try {
      const known = await images();
      for (const stale of pool.removeStale(known)) await discard(stale);
      if (capacity.memoryIsShort) {
        await this.#giveBack();
        return;
      }
      for (const image of known) {
        while (image.ready && pool.missing(image.template) > 0 && !signal.aborted) {
          await foreground.idle(signal);
          // What a caller waits for is not over with our part of it, and another may follow.
          await sleep(PAUSE_MS, signal);
          await foreground.idle(signal);
          await this.#fill(image, signal);
        }
      }
      this.#failures = 0;
    } catch (error) {
      if (signal.aborted) return;
      // A full machine is no fault: the next poll sees whether there is room.
      if (isServiceError(error, 'no_capacity')) return;
      logger.warn({ err: error }, 'the pool could not be filled; trying again later');
      this.#failures += 1;
      const baseMs = firstBackoffMs ?? FIRST_BACKOFF_MS;
      await sleep(backoffMs(this.#failures, { baseMs, maxMs: MAX_BACKOFF_MS }), signal);
      this.#wakeable.wake();
    }
  }

  async #fill(image: ImageInfo, signal: AbortSignal): Promise<void> {
    const { pool, maker } = this.#options;
    const deadline = withDeadline(signal, RESTORE_MS);
    deadline.throwIfAborted();
    const made = await maker.make({ image, size: {} }, deadline);
    try {
      // What a restored guest does first is slow: done here, it is not slow when somebody waits for it.
      await this.#rehearse(made.vm, deadline);
      await made.vm.personalize({ hostname: IDLE_HOSTNAME, env: {} }, deadline);
      await made.vm.exec({ command: 'true', onOutput: () => undefined }, deadline);
      await made.vm.label(POOL_LABELS);
    } catch (error) {
      await discard(made);
      throw error;
    }
    if (!pool.put(made)) await discard(made);
  }

  /** A VM whose runtime does not answer is a sandbox all the same: whoever wants an agent in it learns of it. */
  async #rehearse(vm: Microvm, signal: AbortSignal): Promise<void> {
    const { rehearse, logger } = this.#options;
    await rehearse(vm, withDeadline(signal, REHEARSAL_MS)).catch((error) => {
      signal.throwIfAborted();
      logger.warn({ err: error, template: vm.template }, 'an agent runtime does not answer');
    });
  }

  async #giveBack(): Promise<void> {
    const { pool, logger } = this.#options;
    const given = pool.giveBack();
    if (given === undefined) return;
    logger.warn({ template: given.vm.template }, 'memory is short: an idle VM is given back');
    await discard(given);
  }
}
