import type { Config } from '@svc/config';
import type { ShutdownTask } from '@svc/service-kit/process';

/** For all that a worker does when it stops, apart from saving the sandboxes that it ends. */
const CLOSE_TIMEOUT_MS = 60_000;

/** For how long a worker that ends its sandboxes may save them, in milliseconds. */
export function endMsOf({ workerEndSeconds }: Pick<Config, 'workerEndSeconds'>): number {
  return 1000 * workerEndSeconds;
}

/** The shutdown task that stops a worker with `close`. */
export function workerTask(
  config: Pick<Config, 'workerEndSeconds'>,
  keepSandboxes: () => boolean,
  close: (options: { readonly keepSandboxes: boolean }) => Promise<void>,
): ShutdownTask {
  return {
    name: 'worker',
    phase: 'end',
    // What happens to the sandboxes is known only when the worker stops.
    get deadlineMs() {
      return CLOSE_TIMEOUT_MS + (keepSandboxes() ? 0 : endMsOf(config));
    },
    run: () => close({ keepSandboxes: keepSandboxes() }),
  };
}
