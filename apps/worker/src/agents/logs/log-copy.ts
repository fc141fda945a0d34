import { ServiceError } from '@svc/contract';
import type { Microvm } from '@svc/microvm';
import { Mutex, settledWithin, withDeadline } from '@svc/service-kit/concurrency';
import type { LogEnd } from '@svc/service-kit/log-tail';
import { FailureLog } from '@svc/service-kit/logging';
import type { WorkerLogger } from '../../logger.ts';
import type { Sandbox } from '../../sandbox/sandbox.ts';
import type { AgentLogs } from './agent-logs.ts';
import { readGuestLog } from './guest-log.ts';
import type { LogDelivery } from './log-delivery.ts';

const SEND_MS = 10_000;
/** For the control plane to take the log at the end, even if everything before took too long. */
const LAST_SEND_MS = 2_000;

export interface LogCopyOptions {
  readonly vm: Pick<Microvm, 'download' | 'exited' | 'paused' | 'resume'>;
  readonly sandbox: Pick<Sandbox, 'id' | 'record'>;
  readonly logs: AgentLogs;
  readonly delivery: Pick<LogDelivery, 'deliver'>;
  readonly logger: Pick<WorkerLogger, 'warn'>;
}

/**
 * The log of one agent: read in its VM while that runs; copied out when it is paused, when the agent has exited and when
 * the sandbox ends; and sent to the control plane in the latter two cases, after which it can no longer grow.
 */
export class LogCopy {
  readonly #options: LogCopyOptions;
  /** A copy is not replaced while it is being sent, because it is deleted then. */
  readonly #work = new Mutex();
  /** A guest can withhold its log at each of any number of pauses. */
  readonly #failures = new FailureLog();

  constructor(options: LogCopyOptions) {
    this.#options = options;
  }

  /** The log in the running VM. @throws ServiceError `logs_unavailable` */
  async read(): Promise<LogEnd> {
    try {
      return await readGuestLog(this.#options.vm);
    } catch (cause) {
      throw new ServiceError('logs_unavailable', undefined, { cause });
    }
  }

  /** Copies the log of the running VM. False when it cannot be read. Never rejects; ends within about 20 s. */
  keep(): Promise<boolean> {
    return this.#work.run(() => this.#keep());
  }

  /** Sends the copy, if there is one, of an agent that has exited. Never rejects. */
  async send(ms = SEND_MS): Promise<void> {
    const { sandbox, delivery } = this.#options;
    await this.#work.run(() => delivery.deliver(sandbox.id, withDeadline(undefined, ms)));
  }

  /** At the end of the sandbox: copies and sends the log. Never rejects; ends within `ms` and 2 s. */
  async finish(ms: number): Promise<void> {
    const { vm } = this.#options;
    const end = performance.now() + ms;
    const copied = Promise.race([vm.exited, this.#work.run(() => this.#keepLast(ms))]);
    await settledWithin(copied, ms);
    const left = Math.max(LAST_SEND_MS, end - performance.now());
    await settledWithin(this.send(left), left);
  }

  async #keepLast(ms: number): Promise<void> {
    const { vm, sandbox, logs, logger } = this.#options;
    try {
      // The log of a paused VM, or of an agent that has exited, has not grown since it was copied.
      const isCurrent = vm.paused || sandbox.record().agent_exit_code !== undefined;
      if (isCurrent && (await logs.find(sandbox.id)) !== undefined) return;
      if (vm.paused) await vm.resume(withDeadline(undefined, ms));
      // An older copy would be a wrong answer.
      if (!(await this.#keep())) await logs.remove(sandbox.id);
    } catch (error) {
      logger.warn({ err: error, vmId: sandbox.id }, 'the log of an agent is lost');
    }
  }

  async #keep(): Promise<boolean> {
    const { vm, sandbox, logs, logger } = this.#options;
    try {
      await logs.keep(sandbox.id, await readGuestLog(vm));
      return true;
    } catch (error) {
      this.#failures.note((omitted) =>
        logger.warn({ err: error, vmId: sandbox.id, omitted }, 'cannot copy the log of an agent'),
      );
      return false;
    }
  }
}
