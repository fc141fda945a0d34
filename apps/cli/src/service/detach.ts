import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, open } from 'node:fs/promises';
import type { Config } from '@svc/config';
import { CliError } from '../output/errors.ts';
import { alreadyRunning } from './data-lock.ts';
import { servicePaths } from './paths.ts';
import { runningService } from './service-record.ts';
import { tailFile } from './tail-file.ts';

/**
 * Starts the service as a separate process, prints its output until it is ready, and detaches from it. Ctrl-C before
 * that stops the service; a terminal or connection that is closed does not.
 * @throws CliError `already_running`; `start_failed` if the process exits before it is ready
 */
export async function startDetached(config: Config): Promise<void> {
  const paths = servicePaths(config.dataDir);
  const running = await runningService(paths.record);
  if (running !== undefined) throw alreadyRunning(paths, running.process.pid);
  await mkdir(paths.dataDir, { recursive: true, mode: 0o700 });
  const output = await open(paths.console, 'w', 0o600);
  const [, main = ''] = process.argv;
  const service = spawn(process.execPath, [main, 'up'], {
    detached: true,
    stdio: ['ignore', output.fd, output.fd, 'ipc'],
  });
  const stopTail = tailFile(paths.console, process.stdout);
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
    await stopTail();
    await output.close();
  }
  service.unref();
  console.log('The service is running in the background; `svc down` stops it.');
}

/** Waits until the service is ready (undefined) or has exited (its exit code or signal). */
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
