import type { ImageInfo, MicrovmHost, VmShape } from '@svc/microvm';
import { backoffMs, sleep, withDeadline } from '@svc/service-kit/concurrency';
import type { WorkerLogger } from '../../logger.ts';
import type { Capacity } from '../capacity/capacity.ts';
import type { Foreground } from './foreground.ts';
import type { Pool } from './pool.ts';

export interface ShapePreparerOptions {
  readonly host: Pick<MicrovmHost, 'prepareShape'>;
  /** The shapes, other than its own, that requests for an image often need. */
  readonly shapes: (image: ImageInfo) => readonly VmShape[];
  readonly images: () => Promise<ImageInfo[]>;
  readonly pool: Pool;
  readonly capacity: Capacity;
  readonly foreground: Foreground;
  readonly logger: WorkerLogger;
  readonly pollMs?: number;
  readonly firstBackoffMs?: number;
}

const POLL_MS = 5_000;
const ATTEMPTS = 5;
const FIRST_BACKOFF_MS = 10_000;
const MAX_BACKOFF_MS = 10 * 60_000;
const PREPARE_MS = 15 * 60_000;

/**
 * Prepares the snapshots of shapes that are often needed, so that the first request for each does not have to wait. In the
 * background: when the pools are full, memory is not short, and no caller waits.
 */
export class ShapePreparer {
  readonly #options: ShapePreparerOptions;

  constructor(options: ShapePreparerOptions) {
    this.#options = options;
  }

  /** Runs until each shape of each image is ready or has failed a few times, or `signal` aborts. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { shapes, pool, logger } = this.#options;
    try {
      for (const image of await this.#quietImages(signal)) {
        if (!pool.keeps(image.template)) continue;
        for (const shape of shapes(image)) await this.#prepare(image.template, shape, signal);
      }
    } catch (error) {
      if (!signal.aborted) logger.error({ err: error }, 'cannot determine which shapes to prepare');
    }
  }

  async #prepare(template: string, shape: VmShape, signal: AbortSignal): Promise<void> {
    const { host, logger, firstBackoffMs: baseMs = FIRST_BACKOFF_MS } = this.#options;
    for (let attempt = 1; attempt <= ATTEMPTS && !signal.aborted; attempt += 1) {
      try {
        await this.#quietImages(signal);
        await host.prepareShape(
          template,
          shape,
          { background: true },
          withDeadline(signal, PREPARE_MS),
        );
        return;
      } catch (error) {
        if (signal.aborted) return;
        const details = { err: error, template, ...shape, attempt };
        logger.warn(details, 'cannot prepare a snapshot of this shape');
        await sleep(backoffMs(attempt, { baseMs, maxMs: MAX_BACKOFF_MS }), signal);
      }
    }
  }

  /** The images, once no caller waits and no idle VM is missing. */
  async #quietImages(signal: AbortSignal): Promise<ImageInfo[]> {
    const { images, pool, capacity, foreground, pollMs = POLL_MS } = this.#options;
    for (;;) {
      await foreground.idle(signal);
      signal.throwIfAborted();
      const known = await images();
      const missing = known.some(({ ready, template }) => ready && pool.missing(template) > 0);
      if (!missing && !capacity.memoryIsShort) return known.filter(({ ready }) => ready);
      await sleep(pollMs, signal);
    }
  }
}
