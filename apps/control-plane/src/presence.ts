import { randomUUID } from 'node:crypto';
import { ServiceError } from '@svc/contract';
import { sleep } from '@svc/service-kit/concurrency';
import { IncompatibleSchemaError, type Store } from '@svc/store';
import type { FastifyBaseLogger } from 'fastify';

const INTERVAL_MS = 5_000;
/** Every so many beats, the schema is relieved of what no control plane needs any more. */
const BEATS_PER_CONTRACTION = 12;

export interface PresenceParts {
  readonly store: Pick<Store, 'controlPlanes' | 'contract'>;
  readonly logger: FastifyBaseLogger;
}

/**
 * Tells control planes of other versions, through the database, that this one is alive, so that its part of the schema
 * stays; and takes out of the schema what no one needs any more.
 */
export class Presence {
  readonly #parts: PresenceParts;
  readonly #id = randomUUID();
  readonly #closing = new AbortController();
  #loop: Promise<void> | undefined;
  #incompatible: IncompatibleSchemaError | undefined;

  constructor(parts: PresenceParts) {
    this.#parts = parts;
  }

  /** Settles when others know. @throws IncompatibleSchemaError when this version is too old for the schema */
  async start(): Promise<void> {
    await this.#parts.store.controlPlanes.beat(this.#id);
    this.#loop = this.#run(this.#closing.signal);
  }

  /** @throws ServiceError `database_unavailable` when the schema is no longer one for this version */
  check(): void {
    if (this.#incompatible === undefined) return;
    const cause = this.#incompatible;
    throw new ServiceError('database_unavailable', undefined, { cause });
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#loop;
    const { store, logger } = this.#parts;
    await store.controlPlanes
      .leave(this.#id)
      .catch((err) =>
        logger.debug({ err }, 'others learn of the end of this control plane by its silence'),
      );
  }

  async #run(signal: AbortSignal): Promise<void> {
    for (let beats = 0; !signal.aborted; beats += 1) {
      if (beats > 0) await this.#beat();
      if (beats % BEATS_PER_CONTRACTION === 0) await this.#contract();
      await sleep(INTERVAL_MS, signal, { ref: false });
    }
  }

  async #beat(): Promise<void> {
    const { store, logger } = this.#parts;
    try {
      await store.controlPlanes.beat(this.#id);
    } catch (error) {
      if (!(error instanceof IncompatibleSchemaError)) {
        logger.debug({ err: error }, 'cannot tell other control planes that this one is alive');
        return;
      }
      if (this.#incompatible === undefined) {
        logger.error(
          { err: error },
          'this control plane has been silent for so long that others have changed the schema',
        );
      }
      this.#incompatible = error;
    }
  }

  async #contract(): Promise<void> {
    const { store, logger } = this.#parts;
    try {
      const waiting = await store.contract();
      if (waiting.length > 0) {
        logger.info(
          { migrations: waiting },
          'migrations wait for control planes of earlier versions to end',
        );
      }
    } catch (err) {
      logger.warn({ err }, 'cannot contract the schema yet; the next try will');
    }
  }
}
