import type { Microvm } from '@svc/microvm';
import {
  settledWithin,
  sleep,
  TokenBucket,
  untilAborted,
  withDeadline,
} from '@svc/service-kit/concurrency';
import type { NumberedMessage } from '../../agents/link/guest-messages.ts';
import type { ChunkStore } from '../../chunks/chunk-store.ts';
import type { WorkerLogger } from '../../logger.ts';
import type { Sandbox } from '../../sandbox/sandbox.ts';
import type { CommitOutcome, SessionMetrics } from '../metrics.ts';
import { type Committer, isStale, isStorageFull } from './committer.ts';
import type { FilesDue } from './files-due.ts';
import { saveFiles } from './save-files.ts';
import type { TurnStore } from './turn-store.ts';

/** Real turns take longer than this allows; a guest that ends more of them waits. */
const RATE = { perSecond: 2, burst: 60 };
/** For a commit in the background. The next turn commits the frames of one that fails. */
const BACKGROUND_MS = 10_000;
const BACKGROUND_ATTEMPTS = 3;

export interface TurnCommitsOptions {
  readonly committer: Committer;
  readonly vm: Pick<Microvm, 'download'>;
  readonly store: Pick<ChunkStore, 'ready' | 'save'>;
  readonly filesDue: Pick<FilesDue, 'isDue' | 'keep' | 'clear'>;
  /** Ended when the session turns out to have a later generation. */
  readonly sandbox: Pick<Sandbox, 'end'>;
  readonly metrics: Pick<SessionMetrics, 'timeTurnCommit'>;
  readonly logger: Pick<WorkerLogger, 'debug'>;
  readonly onFault: (error: unknown, what: string) => void;
  /** Aborts when the session closes. */
  readonly closed: AbortSignal;
}

/** When and how often a session commits: at the end of each turn, behind it, and at the end of its sandbox. */
export class TurnCommits implements TurnStore {
  readonly #options: TurnCommitsOptions;
  readonly #rate = new TokenBucket(RATE);
  #background: Promise<void> | undefined;
  #stale = false;

  constructor(options: TurnCommitsOptions) {
    this.#options = options;
  }

  /** Not when the session has a later generation, which invalidates the work of this one. */
  get takesState(): boolean {
    return !this.#stale;
  }

  /** Commits the frames and the state of a turn. Rejects only when the session closes. */
  async commitTurn(state: Extract<NumberedMessage, { type: 'state' }>): Promise<CommitOutcome> {
    const { committer, vm, store, filesDue, metrics, onFault, closed } = this.#options;
    await sleep(this.#rate.spend(1), closed);
    const withFiles = state.files || filesDue.isDue;
    await store.ready(closed);
    const save = (signal: AbortSignal) => saveFiles(vm, store, signal);
    const stopTimer = metrics.timeTurnCommit();
    try {
      await committer.commit(
        { conversation: state.conversation, saveFiles: withFiles ? save : undefined },
        closed,
      );
      stopTimer('committed');
    } catch (error) {
      const outcome = isStorageFull(error) ? 'storage_full' : 'failed';
      stopTimer(this.#stale || isStale(error) ? 'stale' : outcome);
      closed.throwIfAborted();
      if (isStale(error)) {
        this.#endStale();
        return 'stale';
      }
      if (outcome === 'failed') onFault(error, 'save a turn of a session');
      // Once this state is acknowledged, the guest does not report the change again.
      if (withFiles) await filesDue.keep(closed, onFault);
      return outcome;
    }
    // Files that stay due are only saved once more.
    await filesDue.clear().catch((error) => onFault(error, 'record that files were saved'));
    return 'committed';
  }

  /** Commits the frames after a turn in the background, so that few are lost if the machine fails. */
  commitInBackground(): void {
    const { committer, logger, closed } = this.#options;
    if (!this.#rate.take()) return;
    this.#background ??= committer
      .commit(undefined, withDeadline(closed, BACKGROUND_MS), BACKGROUND_ATTEMPTS)
      .catch((error) => {
        if (isStale(error)) this.#endStale();
        else logger.debug({ err: error }, 'cannot commit the end of a turn');
      })
      .finally(() => {
        this.#background = undefined;
      });
  }

  /** Settles when no commit runs in the background. Never rejects. */
  async idle(): Promise<void> {
    await this.#background;
  }

  /** Commits all frames at the end of the sandbox. Never rejects; ends within `ms`. */
  async commitRest(ms: number): Promise<void> {
    const { committer, closed } = this.#options;
    if (committer.isDirty && !this.#stale)
      await settledWithin(committer.commit(undefined, closed), ms);
  }

  /**
   * Commits all frames when the worker stops but the sandbox stays. A stale session is left to the next worker process.
   * Rejects when they could not be committed before `signal` aborts.
   */
  async commitForRestart(signal: AbortSignal): Promise<void> {
    const { committer } = this.#options;
    if (!committer.isDirty || this.#stale) return;
    try {
      // A commit in progress, for which this one waits, may take longer.
      await untilAborted(committer.commit(undefined, signal), signal);
    } catch (error) {
      if (!isStale(error)) throw error;
    }
  }

  /**
   * Commits what is left of a closed journal, see {@link Committer.commitLast}. Never rejects; ends within `ms`. False
   * when there are frames left that can still be committed.
   */
  async commitLast(ms: number): Promise<boolean> {
    const { committer, logger } = this.#options;
    if (this.#stale) return true;
    try {
      await committer.commitLast(withDeadline(undefined, ms));
      return true;
    } catch (error) {
      logger.debug({ err: error }, 'cannot commit the end of a session');
      return isStale(error) || !committer.isDirty;
    }
  }

  #endStale(): void {
    if (this.#stale) return;
    this.#stale = true;
    const { sandbox, onFault, closed } = this.#options;
    sandbox.end('worker_lost').catch((error) => {
      if (!closed.aborted) onFault(error, 'end the sandbox of a session');
    });
  }
}
