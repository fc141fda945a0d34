import { isServiceError } from '@svc/contract';
import { MicrovmError } from '@svc/microvm';
import { Mutex, retry, withDeadline } from '@svc/service-kit/concurrency';
import { ControlPlaneError, mayPass } from '../../control-plane/control-plane-transport.ts';
import type { SessionApi } from '../../control-plane/session-api.ts';
import type { StoredFrame } from '../journal/format.ts';
import type { Journal } from '../journal/journal.ts';

export interface CommitterOptions {
  readonly api: Pick<SessionApi, 'commitTurn'>;
  readonly journal: Journal;
  readonly sessionId: string;
  /** The control plane refuses a commit once it knows a later generation. */
  readonly generation: number;
  readonly vmId: string;
  /** For a commit over all its attempts, in ms. */
  readonly commitMs: number;
}

/** The state that a turn leaves behind, besides its frames. */
export interface TurnState {
  readonly conversation: string;
  /** Uploads the agent's files to the control plane and returns their id; undefined when they have not changed. */
  readonly saveFiles: ((signal: AbortSignal) => Promise<string>) | undefined;
}

const FILES_ATTEMPTS = 5;

/** Commits the frames and the state of a session to the control plane, one commit at a time. */
export class Committer {
  readonly #options: CommitterOptions;
  readonly #commits = new Mutex();

  constructor(options: CommitterOptions) {
    this.#options = options;
  }

  /**
   * Commits all uncommitted frames, with the state if there is one. Retries within `commitMs` while the control plane
   * is unavailable. When only the files cannot be saved, it commits the rest before it rejects.
   * @throws ControlPlaneError (see {@link isStale}), or the error that prevented the save
   */
  commit(
    state: TurnState | undefined,
    signal: AbortSignal,
    attempts = Number.POSITIVE_INFINITY,
  ): Promise<void> {
    return this.#commits.run(async () => {
      const bounded = withDeadline(signal, this.#options.commitMs);
      const retries = { baseMs: 100, maxMs: 3_000, signal: bounded, isTransient };
      let filesId: string | undefined;
      let failure: unknown;
      try {
        const { saveFiles } = state ?? {};
        if (saveFiles !== undefined) {
          filesId = await retry(() => saveFiles(bounded), { ...retries, attempts: FILES_ATTEMPTS });
        }
      } catch (error) {
        if (isStale(error)) throw error;
        failure = error;
      }
      const commit = () => this.#commit(state?.conversation, filesId, bounded);
      await retry(commit, { ...retries, attempts });
      if (failure !== undefined) throw failure;
    });
  }

  /** Whether the journal has uncommitted frames. */
  get isDirty(): boolean {
    const { journal } = this.#options;
    return journal.lastSeq > journal.committedSeq;
  }

  async #commit(
    conversation: string | undefined,
    filesId: string | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    const { api, journal, sessionId, generation, vmId } = this.#options;
    const { lastSeq } = journal;
    const frames = await this.#uncommitted(lastSeq);
    await api.commitTurn(
      sessionId,
      {
        generation,
        vm_id: vmId,
        first_seq: frames[0]?.seq ?? lastSeq + 1,
        last_seq: lastSeq,
        frames: frames.map(({ text }) => `${text}\n`).join(''),
        ...(conversation === undefined ? {} : { conversation }),
        ...(filesId === undefined ? {} : { files_id: filesId }),
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

/** Whether the control plane refused because the session has a later generation, or no longer exists. */
export function isStale(error: unknown): boolean {
  if (!(error instanceof ControlPlaneError)) return false;
  return error.code === 'stale_generation' || error.code === 'session_not_found';
}

function isTransient(error: unknown): boolean {
  if (error instanceof MicrovmError) return error.code === 'guest_unreachable';
  return mayPass(error) && !isServiceError(error, 'payload_too_large');
}
