import { rm, stat, writeFile } from 'node:fs/promises';
import { sleep } from '@svc/service-kit/concurrency';
import { filesDuePath } from '../journal/directory.ts';

const DISK_RETRY_MS = 1_000;

/**
 * Whether the agent's files have changed since the last commit that names them. The guest reports a change once, so this
 * is kept beside the journal for a restart.
 */
export class FilesDue {
  readonly #path: string;
  #isDue: boolean;

  private constructor(path: string, isDue: boolean) {
    this.#path = path;
    this.#isDue = isDue;
  }

  /** Reads what an earlier process left in the directory of a journal. */
  static async open(directory: string): Promise<FilesDue> {
    const path = filesDuePath(directory);
    return new FilesDue(path, await exists(path));
  }

  get isDue(): boolean {
    return this.#isDue;
  }

  /**
   * Records that the files are due, for a restart too. Retries for as long as the disk is full, and tells `onFault` once.
   * Rejects when `signal` aborts.
   */
  async keep(signal: AbortSignal, onFault: (error: unknown, what: string) => void): Promise<void> {
    for (let reported = false; !this.#isDue; reported = true) {
      signal.throwIfAborted();
      try {
        await writeFile(this.#path, '', { mode: 0o600 });
        this.#isDue = true;
      } catch (error) {
        if (!reported) onFault(error, 'record that files are due; retrying');
        await sleep(DISK_RETRY_MS, signal);
      }
    }
  }

  /** Records that a commit names the files as they are. Rejects, with the files still due, when it cannot be written. */
  async clear(): Promise<void> {
    if (!this.#isDue) return;
    await rm(this.#path, { force: true });
    this.#isDue = false;
  }
}

async function exists(path: string): Promise<boolean> {
  try {
    await stat(path);
    return true;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return false;
    throw error;
  }
}
