import { readFile } from 'node:fs/promises';
import { writeFileAtomic } from '@svc/service-kit/process';
import ssh2 from 'ssh2';
import type { SshKey } from '../environment.ts';

/** The service's own SSH key, made at its first start. */
export async function ensureSshKey(path: string): Promise<SshKey> {
  try {
    return JSON.parse(await readFile(path, 'utf8'));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
  const { private: privateKey, public: publicKey } = ssh2.utils.generateKeyPairSync('ed25519');
  await writeFileAtomic(path, JSON.stringify({ privateKey, publicKey }));
  return { privateKey, publicKey };
}
