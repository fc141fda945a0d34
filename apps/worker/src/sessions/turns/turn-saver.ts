import type { Microvm } from '@svc/microvm';
import { settledWithin, sleep, untilAborted, withDeadline } from '@svc/service-kit/concurrency';
import type { NumberedMessage } from '../../agents/link/guest-messages.ts';
import { RateLimit } from '../rate-limit.ts';
import type { AgentServices } from '../services.ts';
import { type Committer, isStale } from './committer.ts';
import { type FilesOwner, saveFiles } from './save-files.ts';

/** Turns take longer; who ends more of them waits. */
const RATE = { perSecond: 2, burst: 60 };
/** The next turn commits what this could not. */
const TRAIL_MS = 10_000;
const TRAIL_ATTEMPTS = 3;

export interface TurnSaverOptions {
  readonly vm: Microvm;
  readonly owner: FilesOwner;
  readonly commits: Committer;
  readonly services: Pick<AgentServices, 'api' | 'times' | 'metrics' | 'logger' | 'onFault'>;
  /** Aborts when the session is over here. */
  readonly closed: AbortSignal;
  /** Asks the guest to save; it answers with a `state` message. */
  readonly askToSave: () => void;
  /** Called when the state of a turn could not be saved. */
  readonly onNotSaved: () => Promise<void>;
  /** Called once when it turns out that a newer start of the session exists. */
  readonly onStale: () => void;
}

/** Makes what a session has done the control plane's: at the end of each turn, and at the end of the sandbox. */
export class TurnSaver {
  readonly #options: TurnSaverOptions;
  readonly #rate = new RateLimit(RATE);
  #trailing: Promise<void> | undefined;
  #onSaved: () => void = () => undefined;
  #stale = false;
  /** The guest tells of its files once for each time they change, also when they could not be fetched then. */
  #owesFiles = false;

  constructor(options: TurnSaverOptions) {
    this.#options = options;
  }

  /** Whether a newer start of the session exists: what this one has done counts no more. */
  get isStale(): boolean {
    return this.#stale;
  }

  /**
   * Makes a turn the control plane's. What stands behind it in the line has to wait until this settles, so that
   * nobody sees a task end whose state is not saved. Never settles for a session that was started anew.
   */
  async endTurn(state: Extract<NumberedMessage, { type: 'state' }>): Promise<void> {
    const { commits, vm, services, owner, closed, onNotSaved } = this.#options;
    await sleep(this.#rate.spend(1), closed);
    this.#owesFiles ||= state.files;
    const files = async (signal: AbortSignal) => {
      const id = await saveFiles(vm, services.api, owner, signal);
      this.#owesFiles = false;
      return id;
    };
    const ended = services.metrics.timeTurnCommit();
    try {
      await commits.commit(
        { conversation: state.conversation, saveFiles: this.#owesFiles ? files : undefined },
        closed,
      );
      ended('committed');
    } catch (error) {
      ended(this.#stale || isStale(error) ? 'stale' : 'failed');
      closed.throwIfAborted();
      if (isStale(error)) {
        this.#leave();
        await untilAborted(new Promise<never>(() => undefined), closed);
      }
      services.onFault(error, 'save a turn of a session');
      await onNotSaved();
    }
    this.#onSaved();
  }

  /** Hands over in the background what followed the last commit: a lost machine then loses as little as possible. */
  trail(): void {
    const { commits, services, closed } = this.#options;
    if (!this.#rate.take()) return;
    this.#trailing ??= commits
      .commit(undefined, withDeadline(closed, TRAIL_MS), TRAIL_ATTEMPTS)
      .catch((error) => {
        if (isStale(error)) this.#leave();
        else services.logger.debug({ err: error }, 'cannot commit the end of a turn');
      })
      .finally(() => {
        this.#trailing = undefined;
      });
  }

  /** Settles when nothing is under way in the background. Never rejects. */
  async idle(): Promise<void> {
    await this.#trailing;
  }

  /** At the end of the sandbox: has the guest save, and commits all there is. Never rejects; bounded by `ms`. */
  async finish(ms: number): Promise<void> {
    const { vm, services, commits, closed } = this.#options;
    if (this.#stale) return;
    const end = performance.now() + ms;
    const gone = vm.exited.then(() => undefined);
    await settledWithin(Promise.race([gone, this.#save()]), Math.min(services.times.saveMs, ms));
    if (!commits.isDirty || this.#stale) return;
    await settledWithin(commits.commit(undefined, closed), Math.max(0, end - performance.now()));
  }

  /** Settles when what the guest answered is committed. */
  async #save(): Promise<void> {
    const { vm, closed, askToSave } = this.#options;
    // Only a guest that runs can answer, and that it was paused is of no more use to anybody.
    if (vm.paused) await vm.resume(closed);
    const saved = Promise.withResolvers<void>();
    this.#onSaved = saved.resolve;
    askToSave();
    await saved.promise;
  }

  #leave(): void {
    if (this.#stale) return;
    this.#stale = true;
    this.#options.onStale();
  }
}
