import { WORKER_TIMES } from '@svc/contract';
import { FailureLogs } from '@svc/service-kit/logging';
import type { SessionRow, Store } from '@svc/store';
import type { FastifyBaseLogger } from 'fastify';
import type { LostWorkers } from '../reconcile/lost-workers.ts';
import { withSessionLease } from './lease.ts';
import type { SessionRestarter } from './restart.ts';

/** For the new sandbox. It is not undone when the runtime host stops waiting, because the client comes back. */
const START_MS = 60_000;

interface SessionRecovererParts {
  readonly store: Pick<Store, 'sessions' | 'sandboxes'>;
  readonly restarter: SessionRestarter;
  readonly lostWorkers: Pick<LostWorkers, 'isSilent'>;
  readonly logger: Pick<FastifyBaseLogger, 'warn'>;
}

/** Starts sessions elsewhere whose worker is lost while a client wants to be attached to them. */
export class SessionRecoverer {
  readonly #parts: SessionRecovererParts;
  /** By session: while it cannot be started, each client that attaches begins another try. */
  readonly #starts = new FailureLogs();

  constructor(parts: SessionRecovererParts) {
    this.#parts = parts;
  }

  /**
   * Returns once the session runs in a new sandbox, from its last committed turn and until the time at which it would
   * have ended; at once if its worker is not lost.
   * @throws ServiceError `session_starting`, and the errors of {@link SessionRestarter}
   */
  async recover(sessionId: string): Promise<void> {
    const { store, restarter, logger } = this.#parts;
    const found = await store.sessions.find(sessionId);
    if (found === undefined || !(await this.#isLost(found))) return;
    await withSessionLease(store.sessions, sessionId, async (session) => {
      const ttlSeconds = Math.floor((session.expires_at.getTime() - Date.now()) / 1000);
      if (ttlSeconds < 1 || !(await this.#isLost(session))) return;
      const restart = await restarter.prepare(session, ttlSeconds);
      if (!(await this.#giveUp(session))) return;
      this.#starts.note(sessionId, (omitted) =>
        logger.warn(
          { session: sessionId, vmId: session.vm_id, omitted },
          'the worker of a session is lost; it goes on elsewhere',
        ),
      );
      await restarter.start(session, restart, AbortSignal.timeout(START_MS));
    });
  }

  /** Ends the sandbox of a session, unless its worker has been heard. Whether it has ended as lost. */
  async #giveUp({ tenant_id, vm_id: vmId }: SessionRow): Promise<boolean> {
    const { sandboxes } = this.#parts.store;
    const { unreachableMs: silentMs } = WORKER_TIMES;
    const ended = await sandboxes.endLost({ vmId, silentMs, keepsSession: true });
    const sandbox = ended ?? (await sandboxes.find(tenant_id, vmId));
    return sandbox?.end_reason === 'worker_lost';
  }

  async #isLost({ status, tenant_id, vm_id }: SessionRow): Promise<boolean> {
    if (status !== 'active' && status !== 'failed') return false;
    const { store, lostWorkers } = this.#parts;
    const sandbox = await store.sandboxes.find(tenant_id, vm_id);
    if (sandbox === undefined) return false;
    if (sandbox.state === 'destroyed') return sandbox.end_reason === 'worker_lost';
    return lostWorkers.isSilent(sandbox.worker_id);
  }
}
