import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { SessionState } from '@svc/contract';
import { Outbox } from '../agents/link/outbox.ts';
import type { Clock } from '../clock.ts';
import type { JournalClaims } from './journal/claims.ts';
import { type JournalOwner, journalName, outboxPath, writeOwner } from './journal/directory.ts';
import { Journal } from './journal/journal.ts';

export interface SessionFilesOptions {
  /** The directory that holds a directory for each start of a session. */
  readonly directory: string;
  readonly claims: JournalClaims;
  readonly clock: Clock;
}

/** The files of one start of a session on this machine, claimed so that no one else uses them. */
export class SessionFiles {
  readonly journal: Journal;
  readonly outbox: Outbox;
  readonly #releaseClaim: () => void;

  private constructor(journal: Journal, outbox: Outbox, releaseClaim: () => void) {
    this.journal = journal;
    this.outbox = outbox;
    this.#releaseClaim = releaseClaim;
  }

  /** Creates the files, in place of any from an earlier attempt. `earlier`: the state of a resumed session. */
  static async create(
    options: SessionFilesOptions,
    owner: JournalOwner,
    earlier: SessionState | undefined,
  ): Promise<SessionFiles> {
    const { clock, claims } = options;
    const name = journalName(owner);
    const directory = join(options.directory, name);
    const releaseClaim = claims.claim(name);
    try {
      await mkdir(options.directory, { recursive: true, mode: 0o700 });
      const journal = await Journal.create(
        { directory, clock },
        { frames: earlier?.frames ?? '', lastSeq: earlier?.last_seq ?? 0 },
      );
      await writeOwner(directory, owner);
      return new SessionFiles(journal, await Outbox.open(outboxPath(directory)), releaseClaim);
    } catch (error) {
      releaseClaim();
      throw error;
    }
  }

  /** Opens the files that an earlier worker left. */
  static async open(options: SessionFilesOptions, owner: JournalOwner): Promise<SessionFiles> {
    const { clock, claims } = options;
    const name = journalName(owner);
    const directory = join(options.directory, name);
    const releaseClaim = claims.claim(name);
    const journal = await Journal.open({ directory, clock });
    await writeOwner(directory, owner);
    return new SessionFiles(journal, await Outbox.open(outboxPath(directory)), releaseClaim);
  }

  /** Closes the files and leaves them on disk, for a later worker or for {@link OrphanedJournals}. */
  async close(): Promise<void> {
    await this.outbox.close();
    await this.journal.close();
    this.#releaseClaim();
  }

  /** Closes and deletes the files. */
  async remove(): Promise<void> {
    try {
      await this.outbox.close();
      await this.journal.remove();
    } finally {
      this.#releaseClaim();
    }
  }
}
