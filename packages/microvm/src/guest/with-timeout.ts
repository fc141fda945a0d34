import { openDeadline } from '@svc/service-kit/concurrency';
import { MicrovmError } from '../microvm-error.ts';

/** Does a step that waits for the guest. @throws MicrovmError `timeout` after `ms` milliseconds; the errors of the step */
export async function withTimeout<T>(
  ms: number,
  signal: AbortSignal,
  step: (until: AbortSignal) => Promise<T>,
): Promise<T> {
  using deadline = openDeadline(signal, ms);
  try {
    return await step(deadline.signal);
  } catch (error) {
    if (!deadline.signal.aborted || signal.aborted) throw error;
    throw new MicrovmError('timeout', 'the guest does not answer', { cause: error });
  }
}
