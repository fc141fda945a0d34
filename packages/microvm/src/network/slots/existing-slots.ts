import { readdir, readFile } from 'node:fs/promises';
import type { Instance } from '../instance/instance.ts';

/** Indexes of the slots of this instance that have a namespace or an interface, in ascending order. */
export async function existingSlots(instance: Instance): Promise<number[]> {
  const pattern = new RegExp(`^${instance.name}-(\\d+)$`);
  const names = [...(await networkNames())];
  const indexes = names.flatMap((name) => pattern.exec(name)?.[1] ?? []).map(Number);
  return indexes.sort((a, b) => a - b);
}

/** Names of all named namespaces and of all interfaces in this process's namespace. */
export async function networkNames(): Promise<Set<string>> {
  const devices = await readFile('/proc/self/net/dev', 'utf8');
  const interfaces = devices.split('\n').flatMap((line) => /^\s*([^\s:]+):/.exec(line)?.[1] ?? []);
  return new Set([...interfaces, ...(await namespaceNames())]);
}

async function namespaceNames(): Promise<string[]> {
  try {
    return await readdir('/run/netns');
  } catch (error) {
    const absent = error instanceof Error && 'code' in error && error.code === 'ENOENT';
    if (absent) return []; // The directory does not exist until a namespace is named.
    throw error;
  }
}
