import { EXEC_TIMEOUT_EXIT_CODE, type ExecExitEvent, type ExecRequest } from '@svc/contract';
import type { MicrovmExecRequest, OutputStream } from '@svc/microvm';
import { type Deadline, openDeadline, settledWithin } from '@svc/service-kit/concurrency';
import { toSandboxError } from '../sandbox/microvm-errors.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';

/**
 * Receives output in order of arrival. While a returned promise is pending, the command is held back. `wanted` aborts when
 * the command is to end, after which nobody waits for its output.
 */
export type OutputSink = (
  stream: OutputStream,
  chunk: Buffer,
  wanted: AbortSignal,
) => void | Promise<void>;

/** How a command ended. The caller adds whether its output was truncated. */
export type ExecOutcome = Omit<ExecExitEvent, 'truncated'>;

/** Time for the guest to confirm a kill, after which the response is sent anyway. */
const KILL_CONFIRM_MS = 5_000;

/**
 * Runs a command in a sandbox, and resumes the sandbox first if it is paused. The command's process group is killed when
 * the caller disconnects, when the time is up (exit code 124, `timed_out`), or when the sandbox ends.
 * @throws ServiceError `sandbox_not_running`, `guest_unresponsive`; the reason of `caller` when it aborts
 */
export async function runCommand(
  sandbox: Sandbox,
  request: ExecRequest,
  onOutput: OutputSink,
  caller: AbortSignal,
): Promise<ExecOutcome> {
  const endActivity = sandbox.activity.begin();
  try {
    const vm = await sandbox.power.ensureRunning(caller);
    const start = performance.now();
    const gone = AbortSignal.any([caller, sandbox.signal]);
    using deadline = deadlineOf(request, gone);
    const stop = deadline?.signal ?? gone;
    const sink: MicrovmExecRequest['onOutput'] = (stream, chunk) => onOutput(stream, chunk, stop);
    const finished = vm.exec(commandOf(request, sink), stop);
    const exitCode = await settle(finished, stop, sandbox.signal);
    const duration_ms = Math.round(performance.now() - start);
    if (exitCode !== undefined) return { exit_code: exitCode, duration_ms };
    caller.throwIfAborted();
    sandbox.signal.throwIfAborted();
    return { exit_code: EXEC_TIMEOUT_EXIT_CODE, duration_ms, timed_out: true };
  } catch (error) {
    caller.throwIfAborted();
    sandbox.signal.throwIfAborted();
    throw toSandboxError(error);
  } finally {
    endActivity();
  }
}

/** The exit code; undefined when `stop` ended the command, after the kill was confirmed or the wait for that timed out. */
async function settle(
  finished: Promise<{ exitCode: number }>,
  stop: AbortSignal,
  ended: AbortSignal,
): Promise<number | undefined> {
  const stopped = Promise.withResolvers<undefined>();
  const onStop = () => stopped.resolve(undefined);
  if (stop.aborted) onStop();
  stop.addEventListener('abort', onStop, { once: true });
  try {
    const first = await Promise.race([finished, stopped.promise]);
    if (first !== undefined) return first.exitCode;
    // Once the sandbox has ended, no guest is left to confirm the kill.
    if (!ended.aborted) await settledWithin(finished, KILL_CONFIRM_MS);
    return undefined;
  } catch (error) {
    if (stop.aborted) return undefined;
    throw error;
  } finally {
    stop.removeEventListener('abort', onStop);
  }
}

/** Without a timeout the command is bounded by the sandbox's lifetime. */
function deadlineOf(request: ExecRequest, gone: AbortSignal): Deadline | undefined {
  const { timeout_seconds: seconds } = request;
  return seconds === undefined ? undefined : openDeadline(gone, Math.ceil(seconds * 1000));
}

function commandOf(
  request: ExecRequest,
  onOutput: MicrovmExecRequest['onOutput'],
): MicrovmExecRequest {
  const { command, cwd, env } = request;
  return {
    command,
    onOutput,
    ...(cwd === undefined ? {} : { cwd }),
    ...(env === undefined ? {} : { env }),
  };
}
