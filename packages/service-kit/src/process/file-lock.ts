/**
 * An exclusive lock between processes, which the kernel releases when its holder dies. Node has no flock(2), so a
 * child process running util-linux' `flock` holds the lock, and exits when its pipe from this process closes.
 */

import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import type { Readable, Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { identityOf } from './identity.ts';

const CONFLICT_EXIT_CODE = 75;
const ACQUIRE_DEADLINE_MS = 10_000;
/** Within this time the child of a dead process notices that its pipe is closed, on a loaded machine too. */
const RELEASE_DEADLINE_MS = 10_000;
const RETRY_MS = 50;

type Child = ChildProcessByStdio<Writable, Readable, null>;

/** Another process holds the lock. */
export class FileLockedError extends Error {
  override readonly name = 'FileLockedError';
  readonly path: string;
  /** The pid of the holder, from the file. */
  readonly holder: number | undefined;

  constructor(path: string, holder: number | undefined) {
    super(`${path} is locked${holder === undefined ? '' : ` by process ${holder}`}`);
    this.path = path;
    this.holder = holder;
  }
}

export interface FileLock {
  readonly path: string;
  /** Resolves when the lock is no longer held, released or lost. */
  readonly released: Promise<void>;
  release(): Promise<void>;
}

/**
 * Locks a file, which is created if absent, and writes the pid of this process into it.
 * @throws FileLockedError immediately when a living process holds the lock
 */
export async function lockFile(path: string): Promise<FileLock> {
  const giveUpAt = performance.now() + RELEASE_DEADLINE_MS;
  for (;;) {
    try {
      return await tryToLock(path);
    } catch (error) {
      const holder = error instanceof FileLockedError ? error.holder : undefined;
      if (holder === undefined || (await identityOf(holder)) !== undefined) throw error;
      if (performance.now() > giveUpAt) throw error;
    }
    await sleep(RETRY_MS);
  }
}

async function tryToLock(path: string): Promise<FileLock> {
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
    // Detached: Ctrl-C on the terminal must not release the lock during the orderly shutdown.
    { stdio: ['pipe', 'pipe', 'ignore'], detached: true },
  );
  const released = new Promise<void>((resolve) => {
    child.once('close', () => resolve());
    child.once('error', () => resolve());
  });
  await acquired(child, path);
  child.stdout.destroy();
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

/** Resolves when the child holds the lock. */
async function acquired(child: Child, path: string): Promise<void> {
  const signal = AbortSignal.timeout(ACQUIRE_DEADLINE_MS);
  const locked = once(child.stdout, 'data', { signal }).then(() => undefined);
  const exited = once(child, 'exit', { signal }).then(([code]) => Number(code));
  try {
    const exitCode = await Promise.race([locked, exited]);
    if (exitCode === undefined) return;
    if (exitCode === CONFLICT_EXIT_CODE) throw new FileLockedError(path, await holderOf(path));
    throw new Error(`cannot lock ${path}: flock ended with code ${exitCode}`);
  } catch (error) {
    child.kill('SIGKILL');
    throw error;
  }
}

async function holderOf(path: string): Promise<number | undefined> {
  const pid = Number.parseInt(await readFile(path, 'utf8'), 10);
  return Number.isSafeInteger(pid) ? pid : undefined;
}
