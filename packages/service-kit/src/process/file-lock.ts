/**
 * An exclusive lock between processes that the kernel gives up when its holder dies, however it dies.
 * Node has no flock(2), so a child of util-linux' `flock` holds it, and lives only as long as the pipe from us.
 */

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';

const CONFLICT_EXIT_CODE = 75;
const ACQUIRE_DEADLINE_MS = 10_000;

/** Another process holds the lock. */
export class FileLockedError extends Error {
  override readonly name = 'FileLockedError';
  readonly path: string;
  /** Pid that the holder left in the file. */
  readonly holder: number | undefined;

  constructor(path: string, holder: number | undefined) {
    super(`${path} is locked${holder === undefined ? '' : ` by process ${holder}`}`);
    this.path = path;
    this.holder = holder;
  }
}

export interface FileLock {
  readonly path: string;
  /** Settles when the lock is no longer held, asked for or not. */
  readonly released: Promise<void>;
  release(): Promise<void>;
}

/**
 * Takes the lock on a file, which is made if absent, and writes our pid into it.
 * @throws FileLockedError at once when it is held
 */
export async function lockFile(path: string): Promise<FileLock> {
  const child = spawn(
    'flock',
    [
      '--nonblock',
      '--no-fork',
      '--conflict-exit-code',
      String(CONFLICT_EXIT_CODE),
      path,
      'sh',
      '-c',
      'echo locked; exec cat >/dev/null',
    ],
    // Detached: Ctrl-C on our terminal must not take the lock away while we shut down in order.
    { stdio: ['pipe', 'pipe', 'ignore'], detached: true },
  );
  const released = new Promise<void>((resolve) => {
    child.once('close', () => resolve());
    child.once('error', () => resolve());
  });
  await acquired(child, path);
  child.unref();
  await writeFile(path, `${process.pid}\n`);
  return {
    path,
    released,
    async release() {
      child.stdin.end();
      await released;
    },
  };
}

async function acquired(child: ChildProcess, path: string): Promise<void> {
  const signal = AbortSignal.timeout(ACQUIRE_DEADLINE_MS);
  const exited = once(child, 'exit', { signal }).then(([code]) => ({ code: Number(code) }));
  const locked = child.stdout === null ? exited : once(child.stdout, 'data', { signal });
  try {
    const first = await Promise.race([locked, exited]);
    if (Array.isArray(first)) {
      exited.catch(ignoreLater);
      return;
    }
    if (first.code !== CONFLICT_EXIT_CODE) {
      throw new Error(`cannot lock ${path}: flock ended with code ${first.code}`);
    }
  } catch (error) {
    child.kill('SIGKILL');
    throw error;
  }
  throw new FileLockedError(path, await holderOf(path));
}

/** The race is decided; its deadline passing later means nothing. */
function ignoreLater(): undefined {
  return undefined;
}

async function holderOf(path: string): Promise<number | undefined> {
  const pid = Number.parseInt(await readFile(path, 'utf8'), 10);
  return Number.isSafeInteger(pid) ? pid : undefined;
}
