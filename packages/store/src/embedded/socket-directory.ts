import { createHash } from 'node:crypto';
import { chmod, mkdir, rm, rmdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { CLUSTER_USER, makeOwned } from './cluster.ts';
import type { Account } from './system-user.ts';

/**
 * The directory of the server's socket. Its name is a digest of the data directory, because socket paths are limited to
 * about 100 bytes.
 */
export function socketDirectoryOf(dataDirectory: string): string {
  return join(instanceDirectoryOf(dataDirectory), 'postgres');
}

/** Creates the socket directory, owned by the server's account, and returns it. */
export async function makeSocketDirectory(
  dataDirectory: string,
  account: Account,
): Promise<string> {
  const instance = instanceDirectoryOf(dataDirectory);
  for (const parent of [dirname(instance), instance]) {
    await mkdir(parent, { recursive: true });
    // The server's account must be able to pass. The contents keep their own permissions.
    await chmod(parent, 0o711);
  }
  const directory = socketDirectoryOf(dataDirectory);
  await makeOwned(directory, account);
  return directory;
}

export async function removeSocketDirectory(directory: string): Promise<void> {
  await rm(directory, { recursive: true, force: true });
  // Other parts of the instance may still have files in the parent directory.
  await rmdir(dirname(directory)).catch(() => undefined);
}

/** Connection string for the server with its socket in `directory`. */
export function socketUrl(directory: string): string {
  return `postgres://${CLUSTER_USER}@/postgres?host=${encodeURIComponent(directory)}`;
}

function instanceDirectoryOf(dataDirectory: string): string {
  const root = process.getuid?.() === 0 ? '/run/svc' : userRuntimeDirectory();
  return join(root, createHash('sha256').update(dataDirectory).digest('hex').slice(0, 12));
}

/** Setting the mode of this directory fails when it belongs to another user. */
function userRuntimeDirectory(): string {
  return join(process.env.XDG_RUNTIME_DIR ?? tmpdir(), `svc-${process.getuid?.()}`);
}
