import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { writeFileAtomic } from '@svc/service-kit';

const FILE = 'committed';

/** Notes up to which number the frames of the journal in `directory` are committed. */
export async function writeCommitted(directory: string, seq: number): Promise<void> {
  await writeFileAtomic(join(directory, FILE), String(seq), { durable: false });
}

/** What was noted last; 0 when nothing was. */
export async function readCommitted(directory: string): Promise<number> {
  try {
    const seq = Number(await readFile(join(directory, FILE), 'utf8'));
    return Number.isSafeInteger(seq) && seq >= 0 ? seq : 0;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return 0;
    throw error;
  }
}
