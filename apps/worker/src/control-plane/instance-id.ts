import { createHash } from 'node:crypto';
import { stat } from 'node:fs/promises';

/**
 * Tells machines with the same worker id apart: copies of a disk by the boot, and workers of one machine by the data directory.
 * Stays the same when a worker restarts in place.
 */
export async function instanceIdOf(dataDirectory: string, bootId: string): Promise<string> {
  const { dev, ino } = await stat(dataDirectory);
  return createHash('sha256').update(`${bootId} ${dev} ${ino}`).digest('hex').slice(0, 32);
}
