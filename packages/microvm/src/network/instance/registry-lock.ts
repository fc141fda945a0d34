import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { NetworkError } from '../network-error.ts';

const WAIT_SECONDS = 10;

/**
 * Runs `work` while holding an exclusive lock on `lockFile`. The kernel releases the lock when this process ends in any
 * way.
 *
 * @throws NetworkError `network_setup_failed` when the lock is not available within 10 s
 */
export async function withRegistryLock<T>(lockFile: string, work: () => Promise<T>): Promise<T> {
  const holder = spawn(
    'flock',
    ['-x', '-w', `${WAIT_SECONDS}`, lockFile, 'sh', '-c', 'echo locked; exec cat'],
    { stdio: ['pipe', 'pipe', 'ignore'], detached: true },
  );
  const ended = once(holder, 'close');
  try {
    const [first] = await Promise.race([once(holder.stdout, 'data'), ended]);
    if (!Buffer.isBuffer(first)) {
      throw new NetworkError('network_setup_failed', `cannot lock ${lockFile}: it is in use`);
    }
    return await work();
  } finally {
    holder.stdin.end();
    await ended;
  }
}
