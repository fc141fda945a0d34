import type { ImageInfo, Microvm } from '@svc/microvm';
import { sleep, withDeadline } from '@svc/service-kit/concurrency';
import type { WorkerLogger } from '../../logger.ts';
import type { Foreground } from './foreground.ts';
import type { Pool, PooledVm } from './pool.ts';

export interface PoolWarmerOptions {
  readonly pool: Pool;
  readonly foreground: Foreground;
  readonly images: () => Promise<ImageInfo[]>;
  readonly logger: WorkerLogger;
  readonly pollMs?: number;
}

const POLL_MS = 1_000;
/** A browser starts and draws a page on an emulated processor of a busy machine. */
const WARM_UP_MS = 120_000;

/**
 * Warms the idle VMs of images that name commands for it, one at a time, when no caller waits. A clone has the memory of its
 * snapshot, but none of the code that QEMU translated before it on a machine without KVM.
 */
export class PoolWarmer {
  readonly #options: PoolWarmerOptions;
  readonly #done = new WeakSet<Microvm>();
  #current: { readonly vm: Microvm; readonly taken: AbortController } | undefined;

  constructor(options: PoolWarmerOptions) {
    this.#options = options;
  }

  /** Stops with a VM that no longer is in the pool: its owner has it for themselves. */
  leave({ vm }: PooledVm): void {
    if (this.#current?.vm === vm) this.#current.taken.abort();
  }

  /** Runs until `signal` aborts; never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { pollMs = POLL_MS } = this.#options;
    while (!signal.aborted) {
      await this.#round(signal);
      await sleep(pollMs, signal);
    }
  }

  async #round(signal: AbortSignal): Promise<void> {
    const { pool, foreground, images, logger } = this.#options;
    try {
      for (const { rootfs, template, idleWarmUp } of await images()) {
        if (idleWarmUp.length === 0) continue;
        const cold = pool.idle(template).find((vm) => vm.image === rootfs && !this.#done.has(vm));
        if (cold === undefined) continue;
        await foreground.idle(signal);
        if (pool.idle(template).includes(cold)) await this.#warmUp(cold, idleWarmUp, signal);
      }
    } catch (error) {
      if (!signal.aborted) logger.warn({ err: error }, 'cannot warm an idle VM up');
    }
  }

  /** A VM that cannot be warmed up still works, and is not tried again. */
  async #warmUp(vm: Microvm, commands: readonly string[], signal: AbortSignal): Promise<void> {
    const { logger } = this.#options;
    const taken = new AbortController();
    const deadline = withDeadline(AbortSignal.any([signal, taken.signal]), WARM_UP_MS);
    this.#done.add(vm);
    this.#current = { vm, taken };
    try {
      for (const command of commands) {
        const { exitCode } = await vm.exec({ command, onOutput: () => undefined }, deadline);
        if (exitCode === 0) continue;
        const { template } = vm;
        logger.warn({ template, command, exitCode }, 'an idle VM cannot be warmed up');
      }
    } catch (error) {
      if (!taken.signal.aborted && !signal.aborted) throw error;
    } finally {
      this.#current = undefined;
    }
  }
}
