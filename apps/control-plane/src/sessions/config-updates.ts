import { backoffMs, openDeadline, Wakeable } from '@svc/service-kit/concurrency';
import type { ConfigUpdateRow, Store } from '@svc/store';
import type { FastifyBaseLogger } from 'fastify';
import type { Fleet } from '../workers/fleet.ts';

const AT_ONCE = 32;
/** Pause between two looks at the ledger, for the notices of other control planes and for retries. */
const POLL_MS = 2_000;
/** For one delivery. Ends before the claim does, so that no other control plane delivers at the same time. */
const DELIVERY_MS = 30_000;
const CLAIM_SECONDS = 45;
/** Notices are retried until they expire, or their session ends. */
const BACKOFF = { baseMs: 500, maxMs: 30_000 };
/** The attempt whose failure is worth a warning. */
const WARN_AT = 5;

export interface ConfigUpdatesParts {
  readonly store: Pick<Store, 'configUpdates'>;
  readonly fleet: Pick<Fleet, 'worker'>;
  readonly logger: FastifyBaseLogger;
}

/**
 * Delivers the notices of rotated bundles to the workers of running sessions: those of this control plane at once,
 * those that another one left behind after a pause. At least once each; workers ignore repetitions.
 */
export class ConfigUpdates {
  readonly #parts: ConfigUpdatesParts;
  readonly #closing = new AbortController();
  readonly #waiting = new Wakeable();
  readonly #running = new Set<Promise<void>>();
  #loop: Promise<void> | undefined;

  constructor(parts: ConfigUpdatesParts) {
    this.#parts = parts;
  }

  /** Begins to deliver. */
  start(): void {
    this.#loop ??= this.#deliverAll(this.#closing.signal);
  }

  /** To be called after a rotation: does not wait for the next look at the ledger. */
  wake(): void {
    this.#waiting.wake();
  }

  /** Stops. The ledger keeps what has not been delivered, for another control plane or the next start. */
  async close(): Promise<void> {
    this.#closing.abort(new Error('the control plane ends'));
    await this.#loop;
    await Promise.all(this.#running);
  }

  async #deliverAll(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const claimed = await this.#claim();
      for (const update of claimed) this.#begin(update, signal);
      if (this.#running.size >= AT_ONCE) await Promise.race(this.#running);
      else if (claimed.length === 0) await this.#waiting.wait(POLL_MS, signal);
    }
  }

  async #claim(): Promise<readonly ConfigUpdateRow[]> {
    const { store, logger } = this.#parts;
    try {
      return await store.configUpdates.claim(AT_ONCE - this.#running.size, CLAIM_SECONDS);
    } catch (err) {
      logger.warn({ err }, 'cannot look for rotated secrets to announce; the next look will');
      return [];
    }
  }

  #begin(update: ConfigUpdateRow, signal: AbortSignal): void {
    const running = this.#deliver(update, signal).finally(() => this.#running.delete(running));
    this.#running.add(running);
  }

  /** Never rejects. If the outcome cannot be recorded, the claim ends and the notice is delivered again. */
  async #deliver(update: ConfigUpdateRow, closing: AbortSignal): Promise<void> {
    const { store, logger } = this.#parts;
    const { vm_id: vmId, worker_id: workerId, bundle, version, attempts } = update;
    try {
      const failure = await this.#send(update, closing);
      if (failure === undefined) {
        await store.configUpdates.noteDelivered(update);
        return;
      }
      const level = attempts === WARN_AT ? 'warn' : 'debug';
      const about = { err: failure, vmId, workerId, bundle, version, attempts };
      logger[level](about, 'cannot notify the worker of rotated secrets yet');
      const pauseMs = closing.aborted ? 0 : backoffMs(attempts, BACKOFF);
      await store.configUpdates.postpone(update, pauseMs / 1000);
    } catch (err) {
      logger.warn({ err, vmId, bundle, version }, 'cannot record the notice of rotated secrets');
    }
  }

  /** Undefined when the worker has accepted the notice. */
  async #send({ worker_id, vm_id, bundle, version, keys }: ConfigUpdateRow, closing: AbortSignal) {
    using deadline = openDeadline(closing, DELIVERY_MS);
    try {
      const worker = await this.#parts.fleet.worker(worker_id);
      await worker.configUpdate(vm_id, { bundle, version, keys }, deadline.signal);
      return undefined;
    } catch (error) {
      return error;
    }
  }
}
