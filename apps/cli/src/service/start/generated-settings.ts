import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Config } from '@svc/config';
import { writeFileAtomic } from '@svc/service-kit/process';
import { Secret } from '@svc/service-kit/secret';
import { uuidv7 } from 'uuidv7';

/** The secret of the control planes: configured, or else generated once and stored. */
export async function clusterSecret(config: Config): Promise<Secret> {
  if (config.clusterSecret !== undefined) return config.clusterSecret;
  const generate = () => randomBytes(32).toString('base64url');
  return new Secret(await storedValue(clusterSecretFile(config), generate));
}

/** The secret of the control planes, if this machine has it. */
export async function knownClusterSecret(config: Config): Promise<Secret | undefined> {
  if (config.clusterSecret !== undefined) return config.clusterSecret;
  const stored = await readIfAny(clusterSecretFile(config));
  return stored === '' ? undefined : new Secret(stored);
}

/** The permanent name of this machine's worker: configured, or else generated once and stored. */
export async function workerId(config: Config): Promise<string> {
  if (config.workerId !== undefined) return config.workerId;
  return storedValue(
    join(config.dataDir, 'worker-id'),
    () => `wrk_${uuidv7().replaceAll('-', '')}`,
  );
}

/** The permanent name of this machine's runtime host, generated once and stored. */
export async function runtimeHostId(config: Config): Promise<string> {
  return storedValue(
    join(config.dataDir, 'runtime-host-id'),
    () => `rth_${uuidv7().replaceAll('-', '')}`,
  );
}

/** Reads `file`, and generates it at the first call. The caller holds the lock on the data directory. */
export async function storedValue(
  file: string,
  generate: () => string | Promise<string>,
): Promise<string> {
  const stored = await readIfAny(file);
  if (stored !== '') return stored;
  const generated = await generate();
  await writeFileAtomic(file, `${generated}\n`, { mode: 0o600 });
  return generated;
}

/** The trimmed content of `file`; empty when there is none. */
export async function readIfAny(file: string): Promise<string> {
  const content = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return '';
    throw error;
  });
  return content.trim();
}

function clusterSecretFile({ dataDir }: Config): string {
  return join(dataDir, 'cluster-secret');
}
