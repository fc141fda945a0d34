import { FailureLogs } from '@svc/service-kit/logging';
import type { WorkerLogger } from './logger.ts';

/** Called with a failure that no caller waits for, and with what could not be done. */
export type OnFault = (error: unknown, action: string) => void;

/** Logs failures that no caller waits for: once a minute for each action, since guests and clients can repeat some. */
export function logFaults(logger: Pick<WorkerLogger, 'error'>): OnFault {
  const faults = new FailureLogs();
  return (err, action) =>
    faults.note(action, (omitted) => logger.error({ err, omitted }, `could not ${action}`));
}

/** Names the sandbox in the actions, so that its failures hide none of another. */
export function faultsOf(vmId: string, onFault: OnFault): OnFault {
  return (error, action) => onFault(error, `${action} (${vmId})`);
}
