import type { StatsFs } from 'node:fs';
import { readFile, statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { formatMib } from '../../output/format.ts';
import { type Check, type Finding, fail, ok, warn } from '../findings.ts';

const DISK_MIB = { recommended: 10_240, minimum: 3_072 } as const;
const MEMORY_MIB = { recommended: 2_048, minimum: 768 } as const;
const BYTES_PER_MIB = 1024 * 1024;

/** Free disk space for data and images, and free memory for sandboxes. */
export const resourcesCheck: Check = {
  name: 'resources',
  run: async ({ config }) => [
    await disk('disk, data', config.dataDir),
    await disk('disk, images', config.imageDir),
    await memory(),
  ],
};

async function disk(name: string, directory: string): Promise<Finding> {
  const { bavail, bsize } = await statfsOfNearest(directory);
  const free = (bavail * bsize) / BYTES_PER_MIB;
  return judge(
    name,
    free,
    DISK_MIB,
    `free for ${directory}`,
    'free disk space, or choose another directory',
  );
}

async function memory(): Promise<Finding> {
  const meminfo = await readFile('/proc/meminfo', 'utf8');
  const available = Number(/^MemAvailable:\s+(\d+) kB/m.exec(meminfo)?.[1]) / 1024;
  return judge(
    'memory',
    available,
    MEMORY_MIB,
    'available',
    'stop other programs, or use a larger machine',
  );
}

function judge(
  name: string,
  mib: number,
  { recommended, minimum }: { recommended: number; minimum: number },
  unit: string,
  mend: string,
): Finding {
  const detail = `${formatMib(mib)} ${unit}`;
  if (mib >= recommended) return ok(name, detail);
  const wanted = `${detail}; ${formatMib(recommended)} is recommended`;
  return mib >= minimum ? warn(name, wanted, mend) : fail(name, wanted, mend);
}

/** The file system of a directory, or of its nearest existing parent if it does not exist yet. */
async function statfsOfNearest(directory: string): Promise<StatsFs> {
  for (let path = directory; ; path = dirname(path)) {
    try {
      return await statfs(path);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || path === dirname(path)) throw error;
    }
  }
}
