import { readFile, readlink, rm } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { loadConfig } from '@svc/config';
import { detachMountsBelow, removeAbandoned } from '@svc/microvm';
import { processIds, signalProcess } from '@svc/service-kit/process';

const POLL_MS = 100;
/** Enough for services that stop in order on a busy machine. */
const ORDERLY_MS = 90_000;
const KILL_MS = 10_000;

/** A process that a run has started. */
export interface RunProcess {
  readonly pid: number;
  readonly command: string;
}

/**
 * Ends what an interrupted run has left: its processes, its mounts, the VMs and networks of its services, and its directory.
 * Does nothing but remove the directory when the run has ended in order.
 * @param directory the run's `TMPDIR`, which tells its processes from others
 * @param orderlyMs how long they may take to end in order before they are killed
 * @returns the processes that were still running
 * @throws Error when a process does not end
 */
export async function endRun(directory: string, orderlyMs = ORDERLY_MS): Promise<RunProcess[]> {
  const left = await processesOf(directory);
  if (left.length > 0) {
    await endProcesses(directory, 'SIGINT', orderlyMs);
    await endProcesses(directory, 'SIGKILL', KILL_MS);
    const stuck = await processesOf(directory);
    if (stuck.length > 0) throw new Error(`still running: ${JSON.stringify(stuck)}`);
  }
  await detachMountsBelow(directory);
  await rm(directory, { recursive: true, force: true });
  // VMs survive their service. It is found to be gone by its data directory.
  if (left.length > 0) await removeAbandoned(loadConfig().imageDir);
  return left;
}

/** The processes that were started with this `TMPDIR`, or run in it. */
export async function processesOf(directory: string): Promise<RunProcess[]> {
  const processes = (await processIds()).map(async (pid) => {
    if (pid === process.pid || !(await belongsTo(pid, directory))) return [];
    const command = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
    // One that has ended and was not waited for has no command line.
    return command === '' ? [] : [{ pid, command: command.replaceAll('\0', ' ').trim() }];
  });
  return (await Promise.all(processes)).flat();
}

async function belongsTo(pid: number, directory: string): Promise<boolean> {
  // Neither can be read of a process that has ended.
  const environment = await readFile(`/proc/${pid}/environ`, 'utf8').catch(() => '');
  if (environment.split('\0').includes(`TMPDIR=${directory}`)) return true;
  const cwd = await readlink(`/proc/${pid}/cwd`).catch(() => '');
  return `${cwd}/`.startsWith(`${directory}/`);
}

async function endProcesses(
  directory: string,
  signal: NodeJS.Signals,
  timeoutMs: number,
): Promise<void> {
  const deadline = Date.now() + timeoutMs;
  const signalled = new Set<number>();
  for (;;) {
    const running = await processesOf(directory);
    if (running.length === 0 || Date.now() > deadline) return;
    for (const { pid } of running) {
      // To a service, a second signal means to hurry.
      if (!signalled.has(pid)) signalProcess(pid, signal);
      signalled.add(pid);
    }
    await delay(POLL_MS);
  }
}
