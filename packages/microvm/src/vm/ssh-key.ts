import { readFile } from 'node:fs/promises';
import { writeFileAtomic } from '@svc/service-kit/process';
import ssh2 from 'ssh2';
import type { SshKey } from '../environment.ts';

/** About one key in a hundred that the library makes is one that it cannot read. */
const ATTEMPTS = 20;

/** The service's own SSH key, made at its first start. One that cannot be read opened no guest, and is replaced. */
export async function ensureSshKey(path: string, generate = generateSshKey): Promise<SshKey> {
  const known = await readSshKey(path);
  if (known !== undefined && isUsable(known)) return known;
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const key = generate();
    if (!isUsable(key)) continue;
    await writeFileAtomic(path, JSON.stringify(key));
    return key;
  }
  throw new Error('no SSH key could be made');
}

export function generateSshKey(): SshKey {
  const { private: privateKey, public: publicKey } = ssh2.utils.generateKeyPairSync('ed25519');
  return { privateKey, publicKey };
}

async function readSshKey(path: string): Promise<SshKey | undefined> {
  try {
    return JSON.parse(await readFile(path, 'utf8'));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    return undefined;
  }
}

function isUsable({ privateKey }: SshKey): boolean {
  return !(ssh2.utils.parseKey(privateKey) instanceof Error);
}
