import { sleep } from '@svc/service-kit/concurrency';
import type { Logger } from '@svc/service-kit/logging';
import type { ComponentContext } from './component.ts';

/** Files are read again this often, in ms. */
const REREAD_MS = 60_000;
const STOP_MS = 1_000;

export interface FollowOptions {
  readonly logger: Pick<Logger, 'info' | 'error'>;
  readonly signal: AbortSignal;
  /** Default: a minute. */
  readonly intervalMs?: number;
}

/**
 * Calls `reread` again and again, which replaces what comes from files, and returns whether it has changed. While it throws,
 * what was read before stays, and the log says so. Never rejects.
 * @param subject what is read, for the log
 */
export async function followFiles(
  subject: string,
  reread: () => Promise<boolean>,
  { logger, signal, intervalMs = REREAD_MS }: FollowOptions,
): Promise<void> {
  let hasFailed = false;
  while (!signal.aborted) {
    await sleep(intervalMs, signal, { ref: false });
    if (signal.aborted) return;
    try {
      if (await reread()) logger.info(`the ${subject} is replaced`);
      hasFailed = false;
    } catch (err) {
      if (!hasFailed) logger.error({ err }, `the new ${subject} cannot be used; the old one stays`);
      hasFailed = true;
    }
  }
}

/** As {@link followFiles}, until the service shuts down. */
export function followUntilShutdown(
  subject: string,
  reread: () => Promise<boolean>,
  { logger, shutdown }: Pick<ComponentContext, 'logger' | 'shutdown'>,
): void {
  const stop = new AbortController();
  const following = followFiles(subject, reread, { logger, signal: stop.signal });
  shutdown.add({
    name: subject,
    phase: 'close',
    deadlineMs: STOP_MS,
    run: () => {
      stop.abort();
      return following;
    },
  });
}
