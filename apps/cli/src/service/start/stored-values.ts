import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Config } from '@svc/config';
import { writeFileAtomic } from '@svc/service-kit/process';
import { uuidv7 } from 'uuidv7';

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
