import { open, rename, rm } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { LIMITS } from '@svc/contract';
import { ownerOf } from '../agents/processes/process-owner.ts';
import { runTool } from './run-tool.ts';

/** Below the home directory: what every run can make again. */
const LEFT_OUT = ['.cache', '.npm'];
/** A file's time of change is the kernel's last tick, which may lie so far back, in milliseconds. */
const TICK_MS = 20;
/** How tar says that a file changed while it was read: the archive is whole. */
const SOME_FILES_CHANGED = 1;

export interface SessionFilesOptions {
  readonly home: string;
  readonly restoreArchive: string;
  readonly savedArchive: string;
  readonly maxBytes?: number;
}

/** Why files could not be saved or brought back; its message is for the session's clients. */
export class FilesError extends Error {
  override readonly name = 'FilesError';
}

/**
 * The files of a session, which are the agent's home directory: out of an archive at the start, into one whenever
 * something has changed. The tools run as the agent, so that they read and write only what it could itself.
 */
export class SessionFiles {
  readonly #options: SessionFilesOptions;
  /** Milliseconds since the epoch: what changed later has not been saved. At first, what the image has is. */
  #savedAt = Date.now();

  constructor(options: SessionFilesOptions) {
    this.#options = options;
  }

  /** Unpacks the archive into the home directory, and removes it. What it brought counts as saved. Throws {@link FilesError}. */
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

  /** Makes the archive if something has changed since the last one; false if nothing has. Throws {@link FilesError}. */
  async save(signal: AbortSignal): Promise<boolean> {
    const { home, savedArchive } = this.#options;
    const owner = await ownerOf(home);
    const startedAt = Date.now();
    const found = await runTool('find', this.#findArguments(), { owner, cwd: home, signal });
    if (found.stdout === '') return false;
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
    const leftOut = LEFT_OUT.flatMap((name) => ['-path', `./${name}`, '-o']);
    return [
      ...['.', '(', ...leftOut, '-false', ')', '-prune'],
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
        ...LEFT_OUT.map((name) => `--exclude=./${name}`),
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
