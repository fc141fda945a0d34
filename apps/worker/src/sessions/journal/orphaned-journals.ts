import { readdir, readFile, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { sleep } from '@svc/service-kit/concurrency';
import { ControlPlaneError } from '../../control-plane/control-plane-transport.ts';
import type { AgentServices } from '../services.ts';
import { Committer, isStale } from '../turns/committer.ts';
import { filesIn, readOwner } from './directory.ts';
import { Journal } from './journal.ts';

const PASS_MS = 60_000;
const ATTEMPT_MS = 20_000;
/** A journal that nobody wanted for so long is of no more use, in ms. */
const MAX_AGE_MS = 24 * 3_600_000;

/** Journals whose session ended before everything was the control plane's: hands them over, then deletes them. */
export class OrphanedJournals {
  readonly #services: AgentServices;

  constructor(services: AgentServices) {
    this.#services = services;
  }

  /** A pass every minute until `signal` aborts; never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.pass(signal).catch((error) =>
        this.#services.onFault(error, 'look for journals that were left'),
      );
      await sleep(PASS_MS, signal);
    }
  }

  async pass(signal: AbortSignal): Promise<void> {
    const { directory, sessions, onFault } = this.#services;
    for (const name of await namesIn(directory)) {
      if (signal.aborted) return;
      if (sessions.isClaimed(name)) continue;
      const unclaim = sessions.claim(name);
      try {
        await this.#handOver(join(directory, name), signal);
      } catch (error) {
        if (!signal.aborted) onFault(error, 'hand over a journal that was left');
      } finally {
        unclaim();
      }
    }
  }

  async #handOver(directory: string, signal: AbortSignal): Promise<void> {
    const { api, clock } = this.#services;
    const { mtimeMs } = await stat(directory);
    const owner = readOwner(await readFile(filesIn(directory).owner, 'utf8').catch(() => ''));
    if (owner === undefined || clock.wall() - mtimeMs > MAX_AGE_MS) {
      await rm(directory, { recursive: true, force: true });
      return;
    }
    const journal = await Journal.open({ directory, clock });
    const commits = new Committer({
      api,
      journal,
      sessionId: owner.session_id,
      generation: owner.generation,
      vmId: owner.vm_id,
      commitMs: ATTEMPT_MS,
    });
    try {
      if (commits.isDirty) await commits.commit(undefined, signal);
    } catch (error) {
      if (!isRefusal(error)) throw error;
    } finally {
      await journal.close();
    }
    await journal.remove();
  }
}

/** Whether the control plane will never take it. */
function isRefusal(error: unknown): boolean {
  const malformed = error instanceof ControlPlaneError && [400, 413].includes(error.status);
  return malformed || isStale(error);
}

async function namesIn(directory: string): Promise<string[]> {
  try {
    return await readdir(directory);
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return [];
    throw error;
  }
}
