import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Config } from '@svc/config';
import { writeFileAtomic } from '@svc/service-kit/process';
import { Secret } from '@svc/service-kit/secret';
import { uuidv7 } from 'uuidv7';

/** The secret by which the pieces of the service know each other: configured, or made once and kept. */
export async function clusterSecret(config: Config): Promise<Secret> {
  if (config.clusterSecret !== undefined) return config.clusterSecret;
  const file = join(config.dataDir, 'cluster-secret');
  return new Secret(await keptValue(file, () => randomBytes(32).toString('base64url')));
}

/** The lasting name of this machine's worker: configured, or made once and kept. */
export async function workerId(config: Config): Promise<string> {
  if (config.workerId !== undefined) return config.workerId;
  return keptValue(join(config.dataDir, 'worker-id'), () => `wrk_${uuidv7().replaceAll('-', '')}`);
}

/** The content of `file`, made at the first call. The caller holds the lock of the data directory. */
async function keptValue(file: string, make: () => string): Promise<string> {
  const kept = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return '';
    throw error;
  });
  if (kept.trim() !== '') return kept.trim();
  const made = make();
  await writeFileAtomic(file, `${made}\n`, { mode: 0o600 });
  return made;
}
