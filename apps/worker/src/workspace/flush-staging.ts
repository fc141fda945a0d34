import type { WorkspaceChange, WorkspaceCommit } from '@svc/contract';
import { uuidv7 } from 'uuidv7';
import { BackgroundTasks } from '../chunks/background-tasks.ts';
import type { StoredChunk } from '../chunks/chunk-store.ts';
import type { WorkspaceOwner } from '../control-plane/workspace-api.ts';
import { pagesOf } from './changes.ts';
import { callControlPlane, type WorkspaceDeps } from './deps.ts';
import { ExtentFinder } from './extents.ts';

/** Fewer changes than this are not worth a request while content is being stored. */
const EARLY_CHANGES = 100;

export interface FlushStagingOptions<Entry> {
  readonly api: Pick<WorkspaceDeps['api'], 'stage' | 'commit'>;
  readonly owner: WorkspaceOwner;
  /** What has changed, in the order in which its content is stored. */
  readonly entries: readonly Entry[];
  /** Whether the content of an entry is known and among the first bytes of what is stored. */
  readonly isStored: (entry: Entry, bytes: number) => boolean;
  /** The changes of these entries, by path, without those that are not to be stored. */
  readonly changesOf: (
    entries: readonly Entry[],
    finder: ExtentFinder,
  ) => ReadonlyMap<string, WorkspaceChange>;
  readonly signal: AbortSignal;
}

/**
 * One flush: stages changes while the content of later ones is still being stored, and commits them all at the end. It ends
 * with its owner, also while it stages.
 */
export class FlushStaging<Entry> implements AsyncDisposable {
  readonly #options: FlushStagingOptions<Entry>;
  readonly #flushId = uuidv7();
  readonly #early: BackgroundTasks;
  readonly #changes = new Map<string, WorkspaceChange>();
  /** How many of the entries are taken. */
  #taken = 0;

  constructor(options: FlushStagingOptions<Entry>) {
    this.#options = options;
    this.#early = new BackgroundTasks(1, options.signal);
  }

  /** All changes so far, by path. */
  get changes(): ReadonlyMap<string, WorkspaceChange> {
    return this.#changes;
  }

  /** Stages, in the background, what these chunks contain. A failure shows in {@link commit}. */
  advance(chunks: readonly StoredChunk[]): void {
    if (!this.#early.hasRoom) return;
    const { entries, isStored } = this.#options;
    const bytes = chunks.reduce((sum, { length }) => sum + length, 0);
    let end = this.#taken;
    for (let entry = entries[end]; entry !== undefined && isStored(entry, bytes); ) {
      end += 1;
      entry = entries[end];
    }
    if (end - this.#taken < EARLY_CHANGES) return;
    const changes = this.#take(end, chunks);
    this.#early.start((signal) => this.#stage(changes, signal)).catch(() => undefined);
  }

  /** Stages what is left and commits all, if there is anything. @throws ControlPlaneError */
  async commit(chunks: readonly StoredChunk[]): Promise<WorkspaceCommit | undefined> {
    const { api, owner, entries, signal } = this.#options;
    await this.#early.finished();
    await this.#stage(this.#take(entries.length, chunks), signal);
    if (this.#changes.size === 0) return undefined;
    return callControlPlane(() => api.commit(owner, this.#flushId, signal), signal);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#early[Symbol.asyncDispose]();
  }

  #take(end: number, chunks: readonly StoredChunk[]): readonly WorkspaceChange[] {
    const { entries, changesOf } = this.#options;
    const taken = changesOf(entries.slice(this.#taken, end), new ExtentFinder(chunks));
    this.#taken = end;
    for (const [path, change] of taken) this.#changes.set(path, change);
    return [...taken.values()];
  }

  async #stage(changes: readonly WorkspaceChange[], signal: AbortSignal): Promise<void> {
    const { api, owner } = this.#options;
    for (const page of pagesOf(changes)) {
      await callControlPlane(() => api.stage(owner, this.#flushId, page, signal), signal);
    }
  }
}
