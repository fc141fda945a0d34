import type { StatsFs } from 'node:fs';
import { readFile, statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { formatMib } from '../../output/units.ts';
import { type Check, type Finding, fail, ok, warn } from '../finding.ts';

const DISK_MIB = { enough: 10_240, least: 3_072 } as const;
const MEMORY_MIB = { enough: 2_048, least: 768 } as const;
const BYTES = 1024 * 1024;

/** Room on disk for data and images, and memory for sandboxes. */
export const roomCheck: Check = {
  name: 'room',
  run: async ({ config }) => [
    await disk('disk, data', config.dataDir),
    await disk('disk, images', config.imageDir),
    await memory(),
  ],
};

async function disk(name: string, directory: string): Promise<Finding> {
  const { bavail, bsize } = await statfsOfNearest(directory);
  const free = (bavail * bsize) / BYTES;
  return judge(
    name,
    free,
    DISK_MIB,
    `free for ${directory}`,
    'make room, or choose another directory',
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
    'end other programs, or take a larger machine',
  );
}

function judge(
  name: string,
  mib: number,
  { enough, least }: { enough: number; least: number },
  what: string,
  mend: string,
): Finding {
  const detail = `${formatMib(mib)} ${what}`;
  if (mib >= enough) return ok(name, detail);
  const wanted = `${detail}; ${formatMib(enough)} is comfortable`;
  return mib >= least ? warn(name, wanted, mend) : fail(name, wanted, mend);
}

/** The file system that a directory, which may not exist yet, is or will be on. */
async function statfsOfNearest(directory: string): Promise<StatsFs> {
  for (let path = directory; ; path = dirname(path)) {
    try {
      return await statfs(path);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || path === dirname(path)) throw error;
    }
  }
}
