import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream';
import { ServiceError } from '@svc/contract';
import { MicrovmError } from '@svc/microvm';
import { untilAborted } from '@svc/service-kit/concurrency';
import { toSandboxError } from '../sandbox/microvm-errors.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';
import { Meter } from './meter.ts';
import { ProgressWatch } from './progress.ts';
import type { TransferLimits } from './upload.ts';

/** A file on its way to the caller. `size` is in bytes. */
export interface Download {
  readonly size: number;
  readonly body: Readable;
}

/**
 * Opens a file of a sandbox, which is resumed first if it is paused. Activity lasts until the body has been
 * read or destroyed. A reader or guest that stands still gets the body destroyed.
 * @throws ServiceError `file_not_found`, `is_directory`, `sandbox_not_running`, `guest_unresponsive`
 */
export async function download(
  sandbox: Sandbox,
  path: string,
  limits: Pick<TransferLimits, 'stallMs'>,
  caller: AbortSignal,
): Promise<Download> {
  const endActivity = sandbox.activity.begin();
  const watch = new ProgressWatch(limits.stallMs, () => new ServiceError('guest_unresponsive'));
  const signal = AbortSignal.any([caller, sandbox.signal, watch.signal]);
  const finish = () => {
    watch.stop();
    endActivity();
  };
  try {
    const vm = await sandbox.power.ensureRunning(signal);
    const { size, stream } = await untilAborted(vm.download(path, signal), signal);
    watch.tick();
    const meter = new Meter({
      maxBytes: Number.POSITIVE_INFINITY,
      onProgress: () => watch.tick(),
    });
    const abort = () => meter.destroy(signal.reason);
    signal.addEventListener('abort', abort, { once: true });
    pipeline(stream, meter, () => {
      signal.removeEventListener('abort', abort);
      finish();
    });
    return { size, body: meter };
  } catch (error) {
    finish();
    signal.throwIfAborted();
    throw isBelowFile(error) ? new ServiceError('file_not_found') : toSandboxError(error);
  }
}

/** Reading below what is no directory finds no file; only a writer can make the parent. */
function isBelowFile(error: unknown): boolean {
  return error instanceof MicrovmError && error.code === 'parent_not_found';
}
