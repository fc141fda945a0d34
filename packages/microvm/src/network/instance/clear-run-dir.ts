import { run } from '../command.ts';
import { detachMounts } from './detach-mounts.ts';

/**
 * Removes a run directory. What is mounted below it is let go of first and never descended into, so
 * that nothing is deleted through a mount.
 */
export async function clearRunDir(runDir: string): Promise<void> {
  await detachMounts(runDir);
  await run('rm', ['-rf', '--one-file-system', runDir]);
}
