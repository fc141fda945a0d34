import { LIMITS } from '@svc/contract';
import { sleep } from '@svc/service-kit/concurrency';
import type { Clock } from '../../clock.ts';
import { mayPass } from '../../control-plane/control-plane-transport.ts';
import type { SessionApi } from '../../control-plane/session-api.ts';
import type { WorkerLogger } from '../../logger.ts';
import type { AgentLogs } from './agent-logs.ts';

const PASS_MS = 10_000;

export interface LogDeliveryOptions {
  readonly logs: AgentLogs;
  readonly api: Pick<SessionApi, 'putAgentLog'>;
  readonly registry: { find(vmId: string): { readonly isLive: boolean } | undefined };
  readonly clock: Clock;
  readonly logger: Pick<WorkerLogger, 'debug'>;
  readonly onFault: (error: unknown, what: string) => void;
}

/**
 * Sends the copies of agents' logs to the control plane and deletes those that it has, or that no record refers to any
 * more. What cannot be sent when a sandbox ends is sent later, by a later worker process too.
 */
export class LogDelivery {
  readonly #options: LogDeliveryOptions;

  constructor(options: LogDeliveryOptions) {
    this.#options = options;
  }

  /** Makes a pass over the copies of ended sandboxes every ten seconds until `signal` aborts. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.pass(signal).catch((error) => this.#options.onFault(error, 'send agent logs'));
      await sleep(PASS_MS, signal);
    }
  }

  /** Sends the copies of ended sandboxes, until one fails. */
  async pass(signal: AbortSignal): Promise<void> {
    const { logs, registry, clock } = this.#options;
    for (const { vmId, keptAt } of await logs.list()) {
      if (signal.aborted) return;
      if (registry.find(vmId)?.isLive) continue;
      const isOld = clock.wall() - keptAt > LIMITS.destroyedRecordSeconds * 1000;
      if (isOld) await logs.remove(vmId);
      else if (!(await this.deliver(vmId, signal))) return;
    }
  }

  /** Sends the copy of a sandbox's log, if there is one. False when it should be tried again. Never rejects. */
  async deliver(vmId: string, signal: AbortSignal): Promise<boolean> {
    const { logs, api, logger } = this.#options;
    try {
      const log = await logs.find(vmId);
      if (log === undefined) return true;
      await api.putAgentLog(vmId, log, signal);
      await logs.remove(vmId);
      return true;
    } catch (error) {
      logger.debug({ err: error, vmId }, 'cannot send the log of an agent');
      if (mayPass(error)) return false;
      await logs.remove(vmId).catch((failure) => this.#options.onFault(failure, 'delete a log'));
      return true;
    }
  }
}
