import { readFile } from 'node:fs/promises';
import { runProgram } from '@svc/service-kit/process';

/** Removes a run directory. Unmounts everything below it first, so that no file is deleted through a mount. */
export async function clearRunDir(runDir: string): Promise<void> {
  await detachMountsBelow(runDir);
  await runProgram('rm', ['-rf', '--one-file-system', runDir]);
}

/** Unmounts everything below a directory, the innermost first. */
export async function detachMountsBelow(directory: string): Promise<void> {
  const mounts = await readFile('/proc/self/mountinfo', 'utf8');
  const points = mounts
    .split('\n')
    .map((line) => line.split(' ')[4] ?? '')
    .filter((point) => point.startsWith(`${directory}/`));
  for (const point of points.reverse()) await runProgram('umount', ['--lazy', point]);
}
