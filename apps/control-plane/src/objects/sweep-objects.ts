import type { ObjectStore } from '@svc/object-store';
import { openDeadline, sleep } from '@svc/service-kit/concurrency';
import type { FastifyBaseLogger } from 'fastify';
import type { ObjectRule } from '../retention/object-rules.ts';
import { Retention, type RetentionParts } from '../retention/retention.ts';

const LEFTOVERS_INTERVAL_MS = 3_600_000;
const CALL_MS = 600_000;

export interface SweepObjectsParts extends Pick<RetentionParts, 'metrics'> {
  readonly objects: Pick<ObjectStore, 'ping' | 'removeLeftovers'>;
  readonly rules: readonly ObjectRule[];
  readonly logger: FastifyBaseLogger;
}

/**
 * Says at the start whether the object store can be reached. Then removes from it what is used no more, until the signal
 * aborts. Any number of control planes may do so at once. Each rule has its own rhythm and waits for no other, nor does
 * the ledger's retention wait for a slow object store.
 */
export async function sweepObjects(parts: SweepObjectsParts, signal: AbortSignal): Promise<void> {
  const { objects, rules, metrics, logger } = parts;
  const passes = rules.map(({ rule, everyMs }) => {
    const retention = new Retention({ rules: [rule], metrics, logger });
    return repeat(everyMs, () => retention.pass(signal), signal);
  });
  const leftovers = repeat(
    LEFTOVERS_INTERVAL_MS,
    () =>
      attempt('leftovers of uploads were not removed', (limit) => objects.removeLeftovers(limit)),
    signal,
  );
  await attempt('the object store cannot be reached; see `svc doctor`', (limit) =>
    objects.ping(limit),
  );
  await Promise.all([...passes, leftovers]);

  async function attempt(message: string, run: (limit: AbortSignal) => Promise<void>) {
    using deadline = openDeadline(signal, CALL_MS);
    try {
      await run(deadline.signal);
    } catch (err) {
      if (!signal.aborted) logger.warn({ err }, message);
    }
  }
}

/** Runs something that never rejects again and again, until the signal aborts. */
async function repeat(
  everyMs: number,
  run: () => Promise<unknown>,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    await run();
    await sleep(everyMs, signal, { ref: false });
  }
}
