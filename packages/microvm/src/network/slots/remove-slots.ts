import { readdir, readFile } from 'node:fs/promises';
import { run } from '../command.ts';
import { NetworkError } from '../network-error.ts';

/**
 * Takes slots away, by their names. Parts that are already gone, by a crash say, are no error.
 *
 * @throws NetworkError `network_setup_failed` when a namespace or interface is still there after.
 */
export async function removeSlots(names: readonly string[]): Promise<void> {
  if (names.length === 0) return;
  const batch = names.map((name) => `link del ${name}\nnetns del ${name}\n`).join('');
  // `ip` fails alike for a part that is gone and one that stays: what counts is what is left.
  const failure = await run('ip', ['-force', '-batch', '-'], batch).then(
    () => undefined,
    (error: unknown) => error,
  );
  if (failure === undefined) return;
  const existing = await networkNames();
  const left = names.filter((name) => existing.has(name));
  if (left.length > 0) {
    throw new NetworkError('network_setup_failed', `cannot remove ${left.join(', ')}`, {
      cause: failure,
    });
  }
}

/** Names of all interfaces of this network namespace and of all named namespaces. */
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
    if (absent) return []; // No namespace was ever named on this machine.
    throw error;
  }
}
