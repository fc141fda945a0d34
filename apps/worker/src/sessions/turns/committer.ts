import { isServiceError } from '@svc/contract';
import { MicrovmError } from '@svc/microvm';
import {
  Mutex,
  openDeadline,
  type RetryOptions,
  retry,
  withDeadline,
} from '@svc/service-kit/concurrency';
import { ControlPlaneError, mayPass } from '../../control-plane/control-plane-transport.ts';
import type { SessionApi } from '../../control-plane/session-api.ts';
import type { StoredFrame } from '../journal/format.ts';
import type { Journal } from '../journal/journal.ts';
import type { SavedFiles } from './save-files.ts';

export interface CommitterOptions {
  readonly api: Pick<SessionApi, 'commitTurn'>;
  readonly journal: Journal;
  readonly sessionId: string;
  /** The control plane refuses a commit once it knows a later generation. */
  readonly generation: number;
  readonly vmId: string;
  /** For a commit over all its attempts, in ms. */
  readonly commitMs: number;
  /** Runs a commit that needs much memory, once it may. */
  readonly runLarge: (commit: () => Promise<void>, signal: AbortSignal) => Promise<void>;
  /** Counts the bytes of frames and conversations, for each attempt to commit them. */
  readonly spend: (bytes: number) => void;
}

/** The state that a turn leaves behind, besides its frames. */
export interface TurnState {
  readonly conversation: string;
  /** Saves the agent's files; undefined when they have not changed. */
  readonly saveFiles: ((signal: AbortSignal) => Promise<SavedFiles>) | undefined;
}

/** The part of the time of a commit that the files may take. The rest is for committing without them. */
const FILES_SHARE = 0.8;
/** A commit of more bytes is large. Two segments of a journal, since the newest one counts as a whole. */
const LARGE_BYTES = 2 * 1024 * 1024;
/** For the last commit, whose failure leaves the rest to a later pass over the orphaned journals. */
const LAST_ATTEMPTS = 3;

/** What a commit holds besides frames. */
interface CommittedState {
  readonly conversation?: string | undefined;
  readonly files?: SavedFiles | undefined;
  /** The numberer of the frames, in its last commit. */
  readonly lastOf?: string | undefined;
  /** Commits only the numbers of the frames, which then no later start shows. */
  readonly withoutFrames?: boolean;
}

/** Commits the frames and the state of a session to the control plane, one commit at a time. */
export class Committer {
  readonly #options: CommitterOptions;
  readonly #commits = new Mutex();

  constructor(options: CommitterOptions) {
    this.#options = options;
  }

  /**
   * Commits all uncommitted frames, with the state if there is one. Retries within `commitMs` while the control plane
   * is unavailable. When only a part cannot be saved, it commits the rest before it rejects: without room for everything,
   * the conversation and the frames; without room for these, the numbers of the frames.
   * @throws ControlPlaneError (see {@link isStale}), or the error that prevented the save
   */
  commit(
    state: TurnState | undefined,
    signal: AbortSignal,
    attempts = Number.POSITIVE_INFINITY,
  ): Promise<void> {
    return this.#commits.run(async () => {
      const { commitMs } = this.#options;
      const bounded = withDeadline(signal, commitMs);
      const retries = { baseMs: 100, maxMs: 3_000, isTransient };
      let files: SavedFiles | undefined;
      let failure: unknown;
      try {
        const { saveFiles } = state ?? {};
        if (saveFiles !== undefined) {
          using saving = openDeadline(bounded, commitMs * FILES_SHARE);
          const within = { ...retries, signal: saving.signal, attempts: Number.POSITIVE_INFINITY };
          files = await retry(() => saveFiles(saving.signal), within);
        }
      } catch (error) {
        if (isStale(error)) throw error;
        failure = error;
      }
      const rest = { conversation: state?.conversation };
      const parts = files === undefined ? [rest] : [{ ...rest, files }, rest];
      const full = await this.#commitFitting(parts, { ...retries, signal: bounded, attempts });
      failure = full ?? failure;
      if (failure !== undefined) throw failure;
    });
  }

  /**
   * Commits all uncommitted frames of a closed journal as the last ones of this start, so that the next one continues
   * with the next number. Fails like {@link commit}.
   */
  commitLast(signal: AbortSignal): Promise<void> {
    const lastOf = this.#options.journal.numberer;
    return this.#commits.run(async () => {
      const retries = { baseMs: 100, maxMs: 1_000, signal, isTransient, attempts: LAST_ATTEMPTS };
      await this.#commitFitting([{ lastOf }], retries);
    });
  }

  /** Whether the journal has uncommitted frames. */
  get isDirty(): boolean {
    const { journal } = this.#options;
    return journal.lastSeq > journal.committedSeq;
  }

  /**
   * Commits the first of these for which there is room, or at least the numbers of the frames, so that no backlog grows.
   * Returns the refusal of what did not fit.
   */
  async #commitFitting(
    parts: readonly CommittedState[],
    retries: RetryOptions & { readonly signal: AbortSignal },
  ): Promise<unknown> {
    const numbers = { lastOf: parts.at(-1)?.lastOf, withoutFrames: true };
    let refusal: unknown;
    for (const part of [...parts, numbers]) {
      try {
        await retry(() => this.#commitInTurn(part, retries.signal), retries);
        return refusal;
      } catch (error) {
        if (!isStorageFull(error)) throw error;
        refusal = error;
      }
    }
    throw refusal;
  }

  /** Frames are read, and the text of a request is made, only while the commit may run. */
  #commitInTurn(part: CommittedState, signal: AbortSignal): Promise<void> {
    const { journal, runLarge } = this.#options;
    const bytes = journal.uncommittedBytes + Buffer.byteLength(part.conversation ?? '');
    const commit = () => this.#commit(part, signal);
    return bytes > LARGE_BYTES ? runLarge(commit, signal) : commit();
  }

  async #commit(
    { conversation, files, lastOf, withoutFrames = false }: CommittedState,
    signal: AbortSignal,
  ): Promise<void> {
    const { api, journal, sessionId, generation, vmId, spend } = this.#options;
    const { lastSeq } = journal;
    const uncommitted = await this.#uncommitted(lastSeq);
    const frames = withoutFrames ? '' : uncommitted.map(({ text }) => `${text}\n`).join('');
    spend(Buffer.byteLength(frames) + Buffer.byteLength(conversation ?? ''));
    await api.commitTurn(
      sessionId,
      {
        generation,
        vm_id: vmId,
        first_seq: uncommitted[0]?.seq ?? lastSeq + 1,
        last_seq: lastSeq,
        frames,
        ...(conversation === undefined ? {} : { conversation }),
        ...(files === undefined ? {} : { files_id: files.id, manifest: files.manifest }),
        ...(lastOf === undefined ? {} : { last_of: lastOf }),
      },
      signal,
    );
    await journal.noteCommitted(lastSeq);
  }

  async #uncommitted(lastSeq: number): Promise<StoredFrame[]> {
    const { journal } = this.#options;
    const frames: StoredFrame[] = [];
    for (let next = journal.committedSeq + 1; next <= lastSeq; ) {
      const batch = await journal.read(next);
      const [first] = batch;
      if (first === undefined) break;
      // A replay must not have a gap, so only the frames after it are committed.
      if (first.seq !== next) frames.length = 0;
      for (const frame of batch) if (frame.seq <= lastSeq) frames.push(frame);
      next = (batch.at(-1)?.seq ?? lastSeq) + 1;
    }
    return frames;
  }
}

/** Whether the control plane refused to keep more because the account's sessions keep as many bytes as they may. */
export function isStorageFull(error: unknown): boolean {
  return error instanceof ControlPlaneError && error.code === 'session_storage_full';
}

/** Refusals after which nothing of this start of a session can be saved any more. */
const FINAL_REFUSALS = ['stale_generation', 'session_erased'];

/** Whether the control plane refused because the session has a later generation or is erased. */
export function isStale(error: unknown): boolean {
  return error instanceof ControlPlaneError && FINAL_REFUSALS.includes(error.code ?? '');
}

/**
 * Whether the control plane refused because it does not know the session. Its database may have been restored, so this is
 * no reason to end anything: the answer to the next heartbeat says what becomes of the sandbox.
 */
export function isUnknownSession(error: unknown): boolean {
  return error instanceof ControlPlaneError && error.code === 'session_not_found';
}

function isTransient(error: unknown): boolean {
  if (error instanceof MicrovmError) return error.code === 'guest_unreachable';
  return mayPass(error) && !isServiceError(error, 'payload_too_large');
}
