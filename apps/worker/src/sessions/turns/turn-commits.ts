import type { Microvm } from '@svc/microvm';
import { settledWithin, sleep, TokenBucket, withDeadline } from '@svc/service-kit/concurrency';
import type { NumberedMessage } from '../../agents/link/guest-messages.ts';
import type { SessionApi } from '../../control-plane/session-api.ts';
import type { WorkerLogger } from '../../logger.ts';
import type { Sandbox } from '../../sandbox/sandbox.ts';
import type { CommitOutcome, SessionMetrics } from '../metrics.ts';
import { type Committer, isStale } from './committer.ts';
import { type FilesOwner, saveFiles } from './save-files.ts';

/** Real turns take longer than this allows; a guest that ends more of them waits. */
const RATE = { perSecond: 2, burst: 60 };
/** For a commit in the background. The next turn commits the frames of one that fails. */
const BACKGROUND_MS = 10_000;
const BACKGROUND_ATTEMPTS = 3;

export interface TurnCommitsOptions {
  readonly committer: Committer;
  readonly vm: Pick<Microvm, 'download'>;
  readonly api: Pick<SessionApi, 'putFiles'>;
  readonly owner: FilesOwner;
  /** Ended when the session turns out to have a later generation. */
  readonly sandbox: Pick<Sandbox, 'end'>;
  readonly metrics: Pick<SessionMetrics, 'timeTurnCommit'>;
  readonly logger: Pick<WorkerLogger, 'debug'>;
  readonly onFault: (error: unknown, what: string) => void;
  /** Aborts when the session closes. */
  readonly closed: AbortSignal;
}

/** When and how often a session commits: at the end of each turn, behind it, and at the end of its sandbox. */
export class TurnCommits {
  readonly #options: TurnCommitsOptions;
  readonly #rate = new TokenBucket(RATE);
  #background: Promise<void> | undefined;
  #stale = false;
  /** The guest reports changed files once. They stay due until they have been saved. */
  #filesDue = false;

  constructor(options: TurnCommitsOptions) {
    this.#options = options;
  }

  /** Whether the session has a later generation, which invalidates the work of this one. */
  get isStale(): boolean {
    return this.#stale;
  }

  /** Whether there are uncommitted frames worth committing. */
  get isDirty(): boolean {
    return this.#options.committer.isDirty && !this.#stale;
  }

  /** Commits the frames and the state of a turn. Rejects only when the session closes. */
  async commitTurn(state: Extract<NumberedMessage, { type: 'state' }>): Promise<CommitOutcome> {
    const { committer, metrics, onFault, closed } = this.#options;
    await sleep(this.#rate.spend(1), closed);
    this.#filesDue ||= state.files;
    const files = this.#filesDue ? (signal: AbortSignal) => this.#saveFiles(signal) : undefined;
    const stopTimer = metrics.timeTurnCommit();
    try {
      await committer.commit({ conversation: state.conversation, saveFiles: files }, closed);
      stopTimer('committed');
      return 'committed';
    } catch (error) {
      stopTimer(this.#stale || isStale(error) ? 'stale' : 'failed');
      closed.throwIfAborted();
      if (isStale(error)) {
        this.#endStale();
        return 'stale';
      }
      onFault(error, 'save a turn of a session');
      return 'failed';
    }
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
    if (this.isDirty) await settledWithin(committer.commit(undefined, closed), ms);
  }

  async #saveFiles(signal: AbortSignal): Promise<string> {
    const { vm, api, owner } = this.#options;
    const id = await saveFiles(vm, api, owner, signal);
    this.#filesDue = false;
    return id;
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
