import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, open } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { Config } from '@svc/config';
import { CliError } from '../output/cli-error.ts';
import { followFile } from './follow-file.ts';
import { servicePlaces } from './places.ts';
import { runningService } from './service-record.ts';
import { alreadyRunning } from './start/data-lock.ts';

const MAIN = fileURLToPath(new URL('../main.ts', import.meta.url));

/**
 * Starts the service as a process of its own, shows what it shows until it is ready, and leaves it.
 * Ctrl-C before that stops it.
 * @throws CliError `already_running`; `start_failed` when it ended instead
 */
export async function startDetached(config: Config): Promise<void> {
  const places = servicePlaces(config.dataDir);
  const running = await runningService(places.record);
  if (running !== undefined) throw alreadyRunning(places, running.process.pid);
  await mkdir(places.dataDir, { recursive: true, mode: 0o700 });
  const output = await open(places.console, 'w', 0o600);
  const service = spawn(process.execPath, [MAIN, 'up'], {
    detached: true,
    stdio: ['ignore', output.fd, output.fd, 'ipc'],
  });
  const stopFollowing = followFile(places.console, process.stdout);
  const interrupt = () => service.kill('SIGTERM');
  process.on('SIGINT', interrupt);
  process.on('SIGTERM', interrupt);
  try {
    const exitCode = await readyOrExited(service);
    if (exitCode !== undefined) {
      throw new CliError('start_failed', `the service did not start (exit code ${exitCode})`, {
        next: 'its output above says why',
      });
    }
  } finally {
    process.off('SIGINT', interrupt);
    process.off('SIGTERM', interrupt);
    await stopFollowing();
    await output.close();
  }
  service.unref();
  console.log('It goes on in the background; `svc down` stops it.');
}

/** Undefined when the service is ready, its exit code when it ended instead. */
async function readyOrExited(service: ChildProcess): Promise<number | string | undefined> {
  const settled = new AbortController();
  const { signal } = settled;
  try {
    return await Promise.race([
      once(service, 'message', { signal }).then(() => undefined),
      once(service, 'exit', { signal }).then(([code, killedBy]) => code ?? killedBy),
    ]);
  } finally {
    settled.abort();
  }
}
