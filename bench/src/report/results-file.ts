import { mkdir, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { RowResult } from '../measure/row.ts';
import type { MachineDescription } from './machine.ts';

const FILE = fileURLToPath(new URL('../../results/latest.json', import.meta.url));

/** Writes the results of a complete run as JSON and returns the path of the file. */
export async function writeResults(
  startedAt: Date,
  machine: MachineDescription,
  runs: number,
  rows: readonly RowResult[],
): Promise<string> {
  const content = {
    started_at: startedAt.toISOString(),
    ended_at: new Date().toISOString(),
    runs,
    machine,
    rows,
  };
  await mkdir(dirname(FILE), { recursive: true });
  await writeFile(FILE, `${JSON.stringify(content, null, 2)}\n`);
  return FILE;
}
