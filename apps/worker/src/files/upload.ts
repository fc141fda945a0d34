import type { Readable } from 'node:stream';
import { ServiceError } from '@svc/contract';
import { untilAborted } from '@svc/service-kit/concurrency';
import { toSandboxError } from '../sandbox/microvm-errors.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';
import { hasData } from './first-byte.ts';
import { Meter } from './meter.ts';
import { ProgressWatch } from './progress.ts';

export interface TransferLimits {
  readonly maxUploadBytes: number;
  /** A transfer in which nothing moves for this long is given up, in ms. */
  readonly stallMs: number;
}

/**
 * Streams a file into a sandbox, which is resumed first if it is paused. The file appears whole or not at all.
 * @throws ServiceError `missing_body`, `payload_too_large`, `request_timeout`, `sandbox_not_running`,
 * `parent_not_found`, `is_directory`, `disk_full`; the caller's reason when it left
 */
export async function upload(
  sandbox: Sandbox,
  path: string,
  source: Readable,
  limits: TransferLimits,
  caller: AbortSignal,
): Promise<void> {
  const endActivity = sandbox.activity.begin();
  const watch = new ProgressWatch(limits.stallMs, () => new ServiceError('request_timeout'));
  const signal = AbortSignal.any([caller, sandbox.signal, watch.signal]);
  try {
    if (!(await hasData(source, signal))) throw new ServiceError('missing_body');
    const vm = await sandbox.power.ensureRunning(signal);
    const meter = new Meter({ maxBytes: limits.maxUploadBytes, onProgress: () => watch.tick() });
    const detach = feed(source, meter);
    try {
      await untilAborted(vm.upload(path, meter, signal), signal);
    } catch (error) {
      throw meter.errored ?? error;
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

/**
 * Pipes `source` into `meter`. Unlike a pipeline it leaves `source` open when `meter` fails, since the answer
 * goes out on the same connection; the returned function detaches them.
 */
function feed(source: Readable, meter: Meter): () => void {
  const onError = (error: Error) => meter.destroy(error);
  const onClose = () => {
    if (!source.readableEnded) meter.destroy(new Error('the body ended before it was complete'));
  };
  meter.on('error', () => source.unpipe(meter));
  source.once('error', onError).once('close', onClose).pipe(meter);
  return () => {
    source.unpipe(meter).off('error', onError).off('close', onClose);
    meter.destroy();
  };
}
