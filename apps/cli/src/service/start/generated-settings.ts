import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Config } from '@svc/config';
import { writeFileAtomic } from '@svc/service-kit/process';
import { Secret } from '@svc/service-kit/secret';
import { uuidv7 } from 'uuidv7';

/** The secret with which the components authenticate each other: configured, or else generated once and stored. */
export async function clusterSecret(config: Config): Promise<Secret> {
  if (config.clusterSecret !== undefined) return config.clusterSecret;
  const file = join(config.dataDir, 'cluster-secret');
  return new Secret(await storedValue(file, () => randomBytes(32).toString('base64url')));
}

/** The permanent name of this machine's worker: configured, or else generated once and stored. */
export async function workerId(config: Config): Promise<string> {
  if (config.workerId !== undefined) return config.workerId;
  return storedValue(
    join(config.dataDir, 'worker-id'),
    () => `wrk_${uuidv7().replaceAll('-', '')}`,
  );
}

/** Reads `file`, and generates it at the first call. The caller holds the lock on the data directory. */
async function storedValue(file: string, generate: () => string): Promise<string> {
  const stored = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return '';
    throw error;
  });
  if (stored.trim() !== '') return stored.trim();
  const generated = generate();
  await writeFileAtomic(file, `${generated}\n`, { mode: 0o600 });
  return generated;
}
