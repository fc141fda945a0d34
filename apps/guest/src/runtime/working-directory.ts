import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { giveToOwner } from '../agents/processes/process-owner.ts';

/** The directory in which the agent's tools and the clients' commands run. */
export function workingDirectoryOf(home: string): string {
  return join(home, 'work');
}

/** Creates the working directory, owned by the owner of the home directory, unless it exists. */
export async function makeWorkingDirectory(home: string): Promise<void> {
  const path = workingDirectoryOf(home);
  if ((await mkdir(path, { recursive: true })) === undefined) return;
  await giveToOwner(home, [path]);
}
