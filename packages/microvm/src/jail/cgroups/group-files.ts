import { mkdir, readdir, rmdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { runEveryStep } from '@svc/service-kit/concurrency';

const REMOVE_ATTEMPTS = 50;
const REMOVE_PAUSE_MS = 20;

/** Period of the processor quota, in microseconds. */
export const CPU_PERIOD_US = 100_000;

/** Creates a group and writes its control files. */
export async function makeGroup(
  path: string,
  files: Readonly<Record<string, string | number>>,
): Promise<void> {
  await mkdir(path, { recursive: true });
  for (const [name, value] of Object.entries(files)) {
    await writeFile(join(path, name), String(value));
  }
}

/** Removes a group. Retries, because the group stays busy for a moment after its last process has ended. */
export async function removeGroup(path: string): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      await rmdir(path);
      return;
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === 'ENOENT') return;
      if (code !== 'EBUSY' || attempt >= REMOVE_ATTEMPTS) throw error;
    }
    await sleep(REMOVE_PAUSE_MS);
  }
}

/** Removes a group and everything in it. */
export async function removeTree(path: string): Promise<void> {
  let entries: string[] = [];
  try {
    const found = await readdir(path, { withFileTypes: true });
    entries = found.filter((entry) => entry.isDirectory()).map((entry) => entry.name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;
    throw error;
  }
  await runEveryStep([
    ...entries
      .map((entry) => join(path, entry))
      .map((group) => ({
        name: `remove ${group}`,
        run: () => removeTree(group),
      })),
    { name: `remove ${path}`, run: () => removeGroup(path) },
  ]);
}
