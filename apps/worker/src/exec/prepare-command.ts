import type { ExecRequest } from '@svc/contract';
import { toSandboxError } from '../sandbox/microvm-errors.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';

/**
 * Resumes a sandbox that is paused, and checks that the directory of a command exists.
 * @throws ServiceError `cwd_not_found`, `sandbox_not_running`, `guest_unresponsive`; the reason of `caller` when it
 *   aborts
 */
export async function prepareCommand(
  sandbox: Sandbox,
  { cwd }: ExecRequest,
  caller: AbortSignal,
): Promise<void> {
  const signal = AbortSignal.any([caller, sandbox.signal]);
  const endActivity = sandbox.activity.begin();
  try {
    const vm = await sandbox.power.ensureRunning(signal);
    if (cwd !== undefined) await vm.checkDirectory(cwd, signal);
  } catch (error) {
    signal.throwIfAborted();
    throw toSandboxError(error);
  } finally {
    endActivity();
  }
}
