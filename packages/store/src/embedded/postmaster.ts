import { spawn } from 'node:child_process';
import { copyFile, open, readdir, readFile, readlink, rm, stat, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { signalProcess } from '@svc/service-kit/process';
import { usesArchive } from './backup/archive.ts';
import type { PostgresBinaries } from './binaries.ts';
import { ENTERED_DIRECTORY, serverEnvironment } from './cluster.ts';
import { serverArguments } from './settings.ts';
import type { Account } from './system-user.ts';

const LOG_LIMIT_BYTES = 8 * 1024 * 1024;
const POLL_MS = 50;
const STOP_STEPS = [
  { signal: 'SIGINT', timeoutMs: 15_000 },
  { signal: 'SIGQUIT', timeoutMs: 5_000 },
  { signal: 'SIGKILL', timeoutMs: 5_000 },
] as const;

export interface PostmasterOptions {
  readonly directory: string;
  readonly socketDirectory: string;
  readonly logFile: string;
  readonly binaries: PostgresBinaries;
  readonly account: Account;
  readonly settings: Readonly<Record<string, string>>;
}

/** Process id of the server that is running on this cluster. Undefined when none is running. */
export async function findPostmaster(directory: string): Promise<number | undefined> {
  const pidFile = await readFile(join(directory, 'postmaster.pid'), 'utf8').catch(() => '');
  const pid = Number.parseInt(pidFile, 10);
  return Number.isInteger(pid) && (await runsIn(pid, directory)) ? pid : undefined;
}

/** Starts the server as a process that outlives this one, and returns its process id. */
export async function spawnPostmaster(options: PostmasterOptions): Promise<number> {
  await removeStalePidFile(options.directory);
  await boundLog(options.logFile);
  const archives = await usesArchive(options.directory);
  const log = await open(options.logFile, 'a', 0o600);
  try {
    const child = spawn(
      join(options.binaries.directory, 'postgres'),
      [
        '-D',
        ENTERED_DIRECTORY,
        ...serverArguments(options.socketDirectory, archives, options.settings),
      ],
      {
        cwd: options.directory,
        ...options.account,
        env: serverEnvironment(),
        detached: true,
        stdio: ['ignore', log.fd, log.fd],
      },
    );
    await new Promise<void>((resolve, reject) => {
      child.once('spawn', resolve);
      child.once('error', reject);
    });
    child.unref();
    if (child.pid === undefined) throw new Error('The PostgreSQL server has no process id.');
    return child.pid;
  } finally {
    await log.close();
  }
}

/** Shuts the server down cleanly. Escalates to stronger signals when it hangs. */
export async function stopPostmaster(directory: string): Promise<void> {
  for (const { signal, timeoutMs } of STOP_STEPS) {
    const pid = await findPostmaster(directory);
    if (pid === undefined) return;
    signalProcess(pid, signal);
    const deadline = Date.now() + timeoutMs;
    while (Date.now() < deadline) {
      if (!(await runsIn(pid, directory))) return;
      await delay(POLL_MS);
    }
  }
  throw new Error(`The PostgreSQL server on ${directory} did not end.`);
}

/** Whether a process is running in this directory. A process id alone is not enough, because ids are reused. */
export async function runsIn(pid: number, directory: string): Promise<boolean> {
  const current = await readlink(`/proc/${pid}/cwd`).catch(() => undefined);
  return current === directory;
}

/**
 * PostgreSQL refuses to start while any process has the id in its pid file. The file also protects against backends
 * that outlived their server, so it is removed only when no process is running in the cluster.
 */
async function removeStalePidFile(directory: string): Promise<void> {
  for (const entry of await readdir('/proc')) {
    if (/^\d+$/.test(entry) && (await runsIn(Number(entry), directory))) return;
  }
  await rm(join(directory, 'postmaster.pid'), { force: true });
}

/** Empties the log of a server, which may be running, if it is too large. What was in it is kept as `<file>.1`, unless it was far too large. */
export async function boundLog(file: string): Promise<void> {
  const size = await stat(file).then(
    (info) => info.size,
    () => 0,
  );
  if (size <= LOG_LIMIT_BYTES) return;
  // One that grew without a bound before is not worth its space twice. A full disk has no room for a copy.
  if (size <= 2 * LOG_LIMIT_BYTES) await copyFile(file, `${file}.1`).catch(() => undefined);
  // The server appends, so that it goes on at the beginning of what is left.
  await truncate(file, 0);
}
