import type { Readable } from 'node:stream';
import { ServiceError } from '@svc/contract';
import { untilAborted } from '@svc/service-kit/concurrency';
import { LimitedStream, limitBody } from '@svc/service-kit/streams';
import { toSandboxError } from '../sandbox/microvm-errors.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';
import { StallWatchdog } from './stall-watchdog.ts';

export interface TransferLimits {
  readonly maxUploadBytes: number;
  /** A transfer without progress for this long is aborted, in ms. */
  readonly stallMs: number;
}

/**
 * Streams a file into a sandbox, and resumes the sandbox first if it is paused. The file appears complete or not at all.
 * @throws ServiceError `payload_too_large`, `request_timeout`, `sandbox_not_running`, `parent_not_found`,
 *   `parent_not_directory`, `symlink_loop`, `is_directory`, `not_regular_file`, `disk_full`; the reason of `caller` when
 *   it aborts
 */
export async function upload(
  sandbox: Sandbox,
  path: string,
  source: Readable,
  limits: TransferLimits,
  caller: AbortSignal,
): Promise<void> {
  const endActivity = sandbox.activity.begin();
  const watch = new StallWatchdog(limits.stallMs, () => new ServiceError('request_timeout'));
  const signal = AbortSignal.any([caller, sandbox.signal, watch.signal]);
  try {
    const vm = await sandbox.power.ensureRunning(signal);
    const limited = new LimitedStream({
      maxBytes: limits.maxUploadBytes,
      onProgress: () => watch.tick(),
    });
    const detach = limitBody(source, limited);
    try {
      await untilAborted(vm.upload(path, limited, signal), signal);
    } catch (error) {
      throw limited.errored ?? error;
    } finally {
      detach();
    }
  } catch (error) {
    signal.throwIfAborted();
    throw toSandboxError(error);
  } finally {
    watch.stop();
    endActivity();
  }
}
