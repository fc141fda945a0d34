import { isServiceError } from '@svc/contract';
import { retry, Slots } from '@svc/service-kit/concurrency';
import type { SessionUse, Store } from '@svc/store';
import type { FastifyBaseLogger } from 'fastify';
import type { AgentVault } from '../agents/agent-vault.ts';
import type { Fleet } from '../workers/fleet.ts';

const REFRESHES_AT_ONCE = 8;
const WORKERS_AT_ONCE = 16;
/** About a minute in all. After that, the worker gets the new values at its next start. */
const RETRIES = { attempts: 10, baseMs: 500, maxMs: 15_000 };

export interface ConfigUpdatesParts {
  readonly store: Pick<Store, 'sessions'>;
  readonly vault: AgentVault;
  readonly fleet: Fleet;
  readonly logger: FastifyBaseLogger;
}

/** Notifies the workers of running sessions of rotated secret bundles. */
export class ConfigUpdates {
  readonly #parts: ConfigUpdatesParts;
  readonly #closing = new AbortController();
  readonly #running = new Set<Promise<void>>();
  readonly #limit = new Slots(WORKERS_AT_ONCE);
  /** Keys to announce, by sandbox. Further rotations add to them, so that notifications do not pile up. */
  readonly #waiting = new Map<string, Set<string>>();

  constructor(parts: ConfigUpdatesParts) {
    this.#parts = parts;
  }

  /**
   * Settles when the new values are stored for every active session of the tenant that uses the bundle. The
   * workers are notified in the background.
   */
  async announce(tenantId: string, bundle: string, keys: readonly string[]): Promise<void> {
    const uses = await this.#parts.store.sessions.using(tenantId, bundle);
    const limit = new Slots(REFRESHES_AT_ONCE);
    await Promise.all(uses.map((use) => limit.run(() => this.#refresh(use))));
    for (const use of uses) this.#queue(use, keys);
  }

  /** Drops the pending notifications. */
  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.all(this.#running);
  }

  #queue(use: SessionUse, keys: readonly string[]): void {
    const waiting = this.#waiting.get(use.vm_id);
    if (waiting !== undefined) {
      for (const key of keys) waiting.add(key);
      return;
    }
    this.#waiting.set(use.vm_id, new Set(keys));
    const running = this.#limit.run(() => this.#tell(use));
    this.#running.add(running);
    void running.finally(() => this.#running.delete(running));
  }

  /** The worker is notified even if this fails, since its secrets are read from the bundles. */
  async #refresh({ vm_id: vmId }: SessionUse): Promise<void> {
    try {
      await this.#parts.vault.refresh(vmId);
    } catch (err) {
      this.#parts.logger.warn({ err, vmId }, 'cannot store the rotated secrets of a session');
    }
  }

  async #tell(use: SessionUse): Promise<void> {
    const { vm_id: vmId, worker_id: workerId } = use;
    const { signal } = this.#closing;
    const send = () => this.#send(use, signal);
    try {
      // Keys that were rotated during a notification need another one.
      do await retry(send, { ...RETRIES, signal, isTransient: (error) => !hasEnded(error) });
      while (this.#waiting.get(vmId)?.size);
    } catch (err) {
      if (!signal.aborted && !hasEnded(err)) {
        this.#parts.logger.warn(
          { err, vmId, workerId },
          'cannot notify the worker of rotated secrets',
        );
      }
    } finally {
      this.#waiting.delete(vmId);
    }
  }

  async #send({ vm_id: vmId, worker_id: workerId }: SessionUse, signal: AbortSignal) {
    const keys = this.#waiting.get(vmId) ?? new Set();
    const later = new Set<string>();
    this.#waiting.set(vmId, later);
    try {
      const worker = await this.#parts.fleet.worker(workerId);
      await worker.configUpdate(vmId, [...keys], signal);
    } catch (error) {
      for (const key of keys) later.add(key);
      throw error;
    }
  }
}

/** An ended sandbox needs no new values. */
function hasEnded(error: unknown): boolean {
  return isServiceError(error, 'sandbox_not_found') || isServiceError(error, 'sandbox_not_running');
}
