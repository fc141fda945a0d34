import { open, rename, rm } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { LIMITS } from '@svc/contract';
import { ownerOf } from '../agents/processes/process-owner.ts';
import { runTool, type ToolResult } from './run-tool.ts';

/** Caches below the home directory that can be recreated. */
const EXCLUDED = ['.cache', '.npm'];
/** Granularity of a file's change time, in milliseconds: the kernel's clock tick, rounded up. */
const TICK_MS = 20;
/** Exit code of tar when a file changed while it was read. The archive is complete. */
const SOME_FILES_CHANGED = 1;

export interface SessionFilesOptions {
  readonly home: string;
  readonly restoreArchive: string;
  readonly savedArchive: string;
  readonly maxBytes?: number;
}

/** Files could not be saved or restored. The message is for the session's clients. */
export class FilesError extends Error {
  override readonly name = 'FilesError';
}

/**
 * The files of a session, which are the agent's home directory. They are unpacked from an archive at the start, and
 * packed into one after each change. The tools run as the agent's user, and so with its permissions.
 */
export class SessionFiles {
  readonly #options: SessionFilesOptions;
  /** Milliseconds since the epoch; files changed later are unsaved. Initially now: the image's files need no saving. */
  #savedAt = Date.now();

  constructor(options: SessionFilesOptions) {
    this.#options = options;
  }

  /** Unpacks the archive into the home directory and removes it. Its files count as saved. Throws {@link FilesError}. */
  async restore(signal: AbortSignal): Promise<void> {
    const { home, restoreArchive } = this.#options;
    const archive = await open(restoreArchive, 'r');
    try {
      const args = ['--extract', '--file=-', '--preserve-permissions', '--delay-directory-restore'];
      const result = await runTool('tar', args, {
        owner: await ownerOf(home),
        cwd: home,
        stdin: archive.fd,
        signal,
      });
      if (result.exitCode !== 0) {
        throw new FilesError('Not all files of the session could be brought back.', {
          cause: result,
        });
      }
    } finally {
      await archive.close();
      await rm(restoreArchive, { force: true });
    }
    await sleep(2 * TICK_MS, undefined, { signal });
    this.#savedAt = Date.now();
  }

  /** Writes the archive if a file has changed since the last one; returns whether it did. Throws {@link FilesError}. */
  async save(signal: AbortSignal): Promise<boolean> {
    const { home, savedArchive } = this.#options;
    const owner = await ownerOf(home);
    const startedAt = Date.now();
    const found = await runTool('find', this.#findArguments(), { owner, cwd: home, signal });
    if (!hasFoundChange(found)) return false;
    const part = `${savedArchive}.part`;
    const archive = await open(part, 'w', 0o600);
    try {
      await this.#pack(archive.fd, owner, signal);
      await rename(part, savedArchive);
    } finally {
      await archive.close();
      await rm(part, { force: true });
    }
    this.#savedAt = startedAt;
    return true;
  }

  #findArguments(): string[] {
    const since = ((this.#savedAt - TICK_MS) / 1000).toFixed(3);
    const excluded = EXCLUDED.flatMap((name) => ['-path', `./${name}`, '-o']);
    return [
      ...['.', '(', ...excluded, '-false', ')', '-prune'],
      ...['-o', '-newerct', `@${since}`, '-printf', 'changed', '-quit'],
    ];
  }

  async #pack(
    stdout: number,
    owner: Awaited<ReturnType<typeof ownerOf>>,
    signal: AbortSignal,
  ): Promise<void> {
    const { home, maxBytes = LIMITS.sessionFilesBytes } = this.#options;
    const { exitCode, ...result } = await runTool(
      'prlimit',
      [
        ...[`--fsize=${maxBytes}`, 'tar'],
        ...['--create', '--file=-', '--sparse', '--one-file-system', '--ignore-failed-read'],
        ...EXCLUDED.map((name) => `--exclude=./${name}`),
        '.',
      ],
      { owner, cwd: home, stdout, signal },
    );
    if (exitCode === 0 || exitCode === SOME_FILES_CHANGED) return;
    const tooLarge = result.signal === 'SIGXFSZ';
    throw new FilesError(
      tooLarge
        ? `The agent's files are larger than ${maxBytes} bytes and were not saved.`
        : "The agent's files could not be saved.",
      { cause: { exitCode, ...result } },
    );
  }
}

/** Whether a search has found a changed file. Throws {@link FilesError} when it was ended before it had seen all of them. */
export function hasFoundChange(found: ToolResult): boolean {
  if (found.stdout !== '') return true;
  // Its exit code is no sign: files that the agent may not read are left out.
  if (found.signal === null) return false;
  throw new FilesError("The agent's files could not be searched for changes and were not saved.", {
    cause: found,
  });
}
