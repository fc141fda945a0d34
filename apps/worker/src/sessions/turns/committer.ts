import { isServiceError } from '@svc/contract';
import { MicrovmError } from '@svc/microvm';
import { Mutex, retry, withDeadline } from '@svc/service-kit/concurrency';
import { ControlPlaneError, mayPass } from '../../control-plane/control-plane-transport.ts';
import type { SessionApi } from '../../control-plane/session-api.ts';
import type { Journal } from '../journal/journal.ts';

export interface CommitterOptions {
  readonly api: SessionApi;
  readonly journal: Journal;
  readonly sessionId: string;
  readonly generation: number;
  readonly vmId: string;
  /** For a commit with all its attempts, in ms. */
  readonly commitMs: number;
}

/** What a turn leaves behind besides its frames. */
export interface TurnState {
  readonly conversation: string;
  /** Brings the agent's files to the control plane and answers their id. */
  readonly saveFiles: ((signal: AbortSignal) => Promise<string>) | undefined;
}

const FILES_ATTEMPTS = 5;

/** Hands what a session leaves behind to the control plane, one commit at a time. */
export class Committer {
  readonly #options: CommitterOptions;
  readonly #turns = new Mutex();

  constructor(options: CommitterOptions) {
    this.#options = options;
  }

  /**
   * Committer every frame that is not committed yet, with the state if there is one. Tries again while the control
   * plane is away, within the time for a commit. Where only the files cannot be had, the rest is committed.
   * @throws ControlPlaneError (`stale_generation`: the session was started anew); what kept something from being saved
   */
  commit(
    state: TurnState | undefined,
    signal: AbortSignal,
    attempts = Number.POSITIVE_INFINITY,
  ): Promise<void> {
    return this.#turns.run(async () => {
      const bounded = withDeadline(signal, this.#options.commitMs);
      const patient = { baseMs: 100, maxMs: 3_000, signal: bounded, isTransient };
      let filesId: string | undefined;
      let failure: unknown;
      try {
        const { saveFiles } = state ?? {};
        if (saveFiles !== undefined) {
          filesId = await retry(() => saveFiles(bounded), { ...patient, attempts: FILES_ATTEMPTS });
        }
      } catch (error) {
        if (isStale(error)) throw error;
        failure = error;
      }
      const commit = () => this.#commit(state?.conversation, filesId, bounded);
      await retry(commit, { ...patient, attempts });
      if (failure !== undefined) throw failure;
    });
  }

  /** Whether there are frames that only this worker has. */
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
    const frames = await this.#frames(lastSeq);
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

  async #frames(lastSeq: number): Promise<{ seq: number; text: string }[]> {
    const { journal } = this.#options;
    const frames: { seq: number; text: string }[] = [];
    for (let next = journal.committedSeq + 1; next <= lastSeq; ) {
      const some = await journal.read(next);
      const [first] = some;
      if (first === undefined) break;
      // Frames from before a hole are of no use behind it.
      if (first.seq !== next) frames.length = 0;
      for (const frame of some) if (frame.seq <= lastSeq) frames.push(frame);
      next = (some.at(-1)?.seq ?? lastSeq) + 1;
    }
    return frames;
  }
}

/** Whether the session is no longer this worker's: a newer start of it exists, or it does not at all. */
export function isStale(error: unknown): boolean {
  if (!(error instanceof ControlPlaneError)) return false;
  return error.code === 'stale_generation' || error.code === 'session_not_found';
}

function isTransient(error: unknown): boolean {
  if (error instanceof MicrovmError) return error.code === 'guest_unreachable';
  return mayPass(error) && !isServiceError(error, 'payload_too_large');
}
