import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { ReservedFrames, SessionState } from '@svc/contract';
import { type Budget, runEveryStep } from '@svc/service-kit/concurrency';
import { Outbox } from '../agents/link/outbox.ts';
import type { Clock } from '../clock.ts';
import type { SessionApi } from '../control-plane/session-api.ts';
import type { JournalClaims } from './journal/claims.ts';
import { type JournalOwner, journalName, outboxPath, writeOwner } from './journal/directory.ts';
import { type EarlierFrames, Journal, type JournalOptions } from './journal/journal.ts';
import { FilesDue } from './turns/files-due.ts';

const NO_EARLIER_FRAMES: EarlierFrames = { frames: '', lastSeq: 0 };

export interface SessionFilesOptions {
  /** The directory that holds a directory for each start of a session. */
  readonly directory: string;
  readonly claims: JournalClaims;
  readonly clock: Clock;
  /** For what the links to all guests of the account hold, in bytes. */
  readonly held: Budget;
  /** Reserves the numbers of frames. Undefined for agents whose frames end with their sandbox. */
  readonly api?: Pick<SessionApi, 'reserveFrames'>;
}

/** How a session starts: its earlier state and the numbers of its next frames. */
export interface FilesStart {
  /** The state of a resumed session. */
  readonly earlier: SessionState | undefined;
  /** Identifies the numberer of this start to the control plane. */
  readonly numberer: string;
  readonly numbers: ReservedFrames;
}

/** The files of one start of a session on this machine, claimed so that no one else uses them. */
export class SessionFiles {
  readonly journal: Journal;
  readonly outbox: Outbox;
  readonly filesDue: FilesDue;
  readonly #releaseClaim: () => void;

  private constructor(
    { journal, outbox, filesDue }: Pick<SessionFiles, 'journal' | 'outbox' | 'filesDue'>,
    releaseClaim: () => void,
  ) {
    this.journal = journal;
    this.outbox = outbox;
    this.filesDue = filesDue;
    this.#releaseClaim = releaseClaim;
  }

  /** Creates the files, in place of any from an earlier attempt. `start`: undefined outside sessions. */
  static create(
    options: SessionFilesOptions,
    owner: JournalOwner,
    start: FilesStart | undefined,
  ): Promise<SessionFiles> {
    const earlier = start === undefined ? NO_EARLIER_FRAMES : earlierFramesOf(start);
    return SessionFiles.#claim(options, owner, async (journal) => {
      await mkdir(options.directory, { recursive: true, mode: 0o700 });
      return Journal.create(journal, earlier);
    });
  }

  /** Opens the files that an earlier worker left. */
  static open(options: SessionFilesOptions, owner: JournalOwner): Promise<SessionFiles> {
    return SessionFiles.#claim(options, owner, (journal) => Journal.open(journal));
  }

  static async #claim(
    options: SessionFilesOptions,
    owner: JournalOwner,
    openJournal: (options: JournalOptions) => Promise<Journal>,
  ): Promise<SessionFiles> {
    const { clock, claims, held } = options;
    const name = journalName(owner);
    const directory = join(options.directory, name);
    await using failed = new AsyncDisposableStack();
    const releaseClaim = claims.claim(name);
    failed.defer(releaseClaim);
    const journal = await openJournal({ directory, clock, ...reservingFor(options, owner) });
    failed.defer(() => journal.close());
    await writeOwner(directory, owner);
    const filesDue = await FilesDue.open(directory);
    const outbox = await Outbox.open(outboxPath(directory), held);
    failed.move();
    return new SessionFiles({ journal, outbox, filesDue }, releaseClaim);
  }

  /** Closes the files and leaves them on disk, for a later worker or for {@link OrphanedJournals}. */
  async close(): Promise<void> {
    await runEveryStep([
      { name: 'close the outbox', run: () => this.outbox.close() },
      { name: 'close the journal', run: () => this.journal.close() },
      { name: 'release the claim', run: this.#releaseClaim },
    ]);
  }

  /** Closes and deletes the files. */
  async remove(): Promise<void> {
    await runEveryStep([
      { name: 'close the outbox', run: () => this.outbox.close() },
      { name: 'remove the journal', run: () => this.journal.remove() },
      { name: 'release the claim', run: this.#releaseClaim },
    ]);
  }
}

function earlierFramesOf({ earlier, numberer, numbers }: FilesStart): EarlierFrames {
  return {
    frames: earlier?.frames ?? '',
    lastSeq: numbers.base_seq,
    numbering: { numberer, reserved: numbers.reserved_seq },
  };
}

function reservingFor(
  { api }: SessionFilesOptions,
  { session_id: sessionId, generation, vm_id }: JournalOwner,
): Pick<JournalOptions, 'reserve'> {
  if (api === undefined) return {};
  return {
    reserve: async (numberer, after, signal) => {
      const request = { generation, vm_id, numberer, after };
      return (await api.reserveFrames(sessionId, request, signal)).reserved_seq;
    },
  };
}
