import { readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { sleep } from '@svc/service-kit/concurrency';
import type { Clock } from '../../clock.ts';
import { ControlPlaneError } from '../../control-plane/control-plane-transport.ts';
import {
  Committer,
  type CommitterOptions,
  isStale,
  isStorageFull,
  isUnknownSession,
} from '../turns/committer.ts';
import type { JournalClaims } from './claims.ts';
import { readOwner } from './directory.ts';
import { Journal } from './journal.ts';

const PASS_MS = 60_000;
const COMMIT_MS = 20_000;
/** A journal that could not be committed for this long is deleted, in ms. */
const MAX_AGE_MS = 24 * 3_600_000;

export interface OrphanedJournalsOptions {
  /** The directory that holds a directory for each journal. */
  readonly directory: string;
  readonly claims: JournalClaims;
  readonly api: CommitterOptions['api'];
  readonly clock: Clock;
  readonly onFault: (error: unknown, what: string) => void;
}

/** The journals of sessions that ended before all their frames were committed: commits, then deletes them. */
export class OrphanedJournals {
  readonly #options: OrphanedJournalsOptions;

  constructor(options: OrphanedJournalsOptions) {
    this.#options = options;
  }

  /** Makes a pass every minute until `signal` aborts. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.pass(signal).catch((error) =>
        this.#options.onFault(error, 'look for orphaned journals'),
      );
      await sleep(PASS_MS, signal);
    }
  }

  async pass(signal: AbortSignal): Promise<void> {
    const { directory, claims, onFault } = this.#options;
    for (const name of await namesIn(directory)) {
      if (signal.aborted) return;
      if (claims.isClaimed(name)) continue;
      const release = claims.claim(name);
      try {
        await this.#handOver(join(directory, name), signal);
      } catch (error) {
        if (!signal.aborted) onFault(error, 'commit an orphaned journal');
      } finally {
        release();
      }
    }
  }

  async #handOver(directory: string, signal: AbortSignal): Promise<void> {
    const { api, clock } = this.#options;
    const { mtimeMs } = await stat(directory);
    const owner = await readOwner(directory);
    if (owner === undefined || clock.wall() - mtimeMs > MAX_AGE_MS) {
      await rm(directory, { recursive: true, force: true });
      return;
    }
    const journal = await Journal.open({ directory, clock });
    const committer = new Committer({
      api,
      journal,
      sessionId: owner.session_id,
      generation: owner.generation,
      vmId: owner.vm_id,
      commitMs: COMMIT_MS,
      // One journal is committed at a time.
      runLarge: (commit) => commit(),
      // Each journal is committed once.
      spend: () => undefined,
    });
    try {
      if (committer.isDirty) await committer.commit(undefined, signal);
    } catch (error) {
      if (!isFinal(error)) throw error;
    } finally {
      await journal.close();
    }
    await journal.remove();
  }
}

/** Whether nothing more of the journal can be committed. */
function isFinal(error: unknown): boolean {
  const malformed = error instanceof ControlPlaneError && [400, 413].includes(error.status);
  return malformed || isStale(error) || isUnknownSession(error) || isStorageFull(error);
}

async function namesIn(directory: string): Promise<string[]> {
  try {
    return await readdir(directory);
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return [];
    throw error;
  }
}
