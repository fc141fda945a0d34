import { readFile } from 'node:fs/promises';
import { run } from '../command.ts';

/**
 * Detaches whatever is still mounted below a run directory. Removing the directory with a mount in
 * place would remove what is mounted there.
 */
export async function detachMounts(directory: string): Promise<void> {
  const mounts = await readFile('/proc/self/mountinfo', 'utf8');
  const points = mounts
    .split('\n')
    .map((line) => line.split(' ')[4] ?? '')
    .filter((point) => point.startsWith(`${directory}/`));
  for (const point of points.reverse()) await run('umount', ['--lazy', point]);
}
