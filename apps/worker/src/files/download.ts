import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream';
import { ServiceError } from '@svc/contract';
import { MicrovmError } from '@svc/microvm';
import { untilAborted } from '@svc/service-kit/concurrency';
import { LimitedStream } from '@svc/service-kit/streams';
import { toSandboxError } from '../sandbox/microvm-errors.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';
import { StallWatchdog } from './stall-watchdog.ts';
import type { TransferLimits } from './upload.ts';

/** A file being sent to the caller. `size` is in bytes; undefined when only its end will tell. */
export interface Download {
  readonly size: number | undefined;
  readonly body: Readable;
}

/**
 * Opens a file of a sandbox, and resumes the sandbox first if it is paused. The sandbox counts as active until the body
 * has been read or destroyed. The body is destroyed when the reader or the guest stalls.
 * @throws ServiceError `file_not_found`, `symlink_loop`, `is_directory`, `not_regular_file`, `sandbox_not_running`,
 *   `guest_unresponsive`
 */
export async function download(
  sandbox: Sandbox,
  path: string,
  limits: Pick<TransferLimits, 'stallMs'>,
  caller: AbortSignal,
): Promise<Download> {
  const endActivity = sandbox.activity.begin();
  const watch = new StallWatchdog(limits.stallMs, () => new ServiceError('guest_unresponsive'));
  const signal = AbortSignal.any([caller, sandbox.signal, watch.signal]);
  const finish = () => {
    watch.stop();
    endActivity();
  };
  try {
    const vm = await sandbox.power.ensureRunning(signal);
    const { size, stream } = await untilAborted(vm.download(path, signal), signal);
    watch.tick();
    const body = new LimitedStream({
      maxBytes: Number.POSITIVE_INFINITY,
      onProgress: () => watch.tick(),
    });
    const abort = () => body.destroy(signal.reason);
    signal.addEventListener('abort', abort, { once: true });
    pipeline(stream, body, () => {
      signal.removeEventListener('abort', abort);
      finish();
    });
    return { size, body };
  } catch (error) {
    finish();
    signal.throwIfAborted();
    throw isBelowFile(error) ? new ServiceError('file_not_found') : toSandboxError(error);
  }
}

/** For a reader, a path below a file means a missing file; only a writer can choose another parent. */
function isBelowFile(error: unknown): boolean {
  return error instanceof MicrovmError && error.code === 'parent_not_directory';
}
