import { setTimeout as sleep } from 'node:timers/promises';
import type { SvcClient } from '@svc/sdk';
import { databaseServer, type PrivateService, until } from '@svc/service-driver';
import { killHard } from '../../test/machine/processes.ts';
import type { Random } from './random.ts';

const LEAST_PAUSE_MS = 10_000;
const MOST_PAUSE_MS = 40_000;
/** For the service to start again and to find its sandboxes, on a loaded machine. */
const RECOVERY_MS = 180_000;

type Victim = 'service' | 'database' | 'service and database';

/** Each is killed this often in a row of crashes, so that a short run has all of them. The order is random. */
const ROW: readonly Victim[] = [
  'service',
  'service',
  'database',
  'database',
  'service and database',
];

/** Kills a service and its database at random moments, and starts the service again. */
export class Crashes {
  /** How often each was killed. */
  readonly counts = new Map<Victim, number>();
  readonly #service: PrivateService;
  readonly #client: SvcClient;
  readonly #random: Random;
  /** What is left of a row. */
  #next: Victim[] = [];
  #underWay = false;
  #lastEnd = Number.NEGATIVE_INFINITY;

  /** `client` is that of any customer. */
  constructor(service: PrivateService, client: SvcClient, random: Random) {
    this.#service = service;
    this.#client = client;
    this.#random = random;
  }

  /** Whether the service was away at any moment since `time`, in milliseconds of `performance.now()`. */
  happenedSince(time: number): boolean {
    return this.#underWay || this.#lastEnd > time;
  }

  /** Kills until `deadline`, in milliseconds of `performance.now()`. At the end the service runs. */
  async run(end: AbortSignal): Promise<void> {
    for (;;) {
      const pause = LEAST_PAUSE_MS + this.#random.below(MOST_PAUSE_MS - LEAST_PAUSE_MS);
      await sleep(pause, undefined, { signal: end }).catch(() => undefined);
      if (end.aborted) return;
      await this.#crash();
    }
  }

  async #crash(): Promise<void> {
    const victim = this.#nextVictim();
    const server = await databaseServer(this.#service.dataDir);
    this.#underWay = true;
    try {
      if (victim !== 'service' && server !== undefined) killHard(server.pid);
      if (victim !== 'database') {
        await this.#service.kill();
        await this.#service.startAgain();
      }
      await this.#recovered(victim === 'service' ? undefined : server?.pid);
    } finally {
      this.#underWay = false;
      this.#lastEnd = performance.now();
    }
    this.counts.set(victim, (this.counts.get(victim) ?? 0) + 1);
  }

  #nextVictim(): Victim {
    if (this.#next.length === 0) this.#next = [...ROW];
    const [victim = 'service'] = this.#next.splice(this.#random.below(this.#next.length), 1);
    return victim;
  }

  /** Waits until a database other than `killed` serves, and every worker answers. */
  async #recovered(killed: number | undefined): Promise<void> {
    await until(
      'the service has recovered from a crash',
      async () => {
        const server = await databaseServer(this.#service.dataDir);
        if (server === undefined || server.pid === killed) return false;
        const complete = (listed: { partial: boolean }) => !listed.partial;
        return this.#client.sandboxes.list({ timeoutMs: 10_000 }).then(complete, () => false);
      },
      { deadlineMs: RECOVERY_MS, intervalMs: 500 },
    );
  }
}
