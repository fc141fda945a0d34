import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { giveToOwner } from '../agents/processes/process-owner.ts';

/** Where an agent's tools and the clients' commands run. */
export function workingDirectoryOf(home: string): string {
  return join(home, 'work');
}

/** Makes it, for the owner of the home directory, unless it is there. */
export async function makeWorkingDirectory(home: string): Promise<void> {
  const path = workingDirectoryOf(home);
  if ((await mkdir(path, { recursive: true })) === undefined) return;
  await giveToOwner(home, [path]);
}
