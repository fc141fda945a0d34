import { readFile } from 'node:fs/promises';
import { writeFileAtomic } from '@svc/service-kit/process';
import ssh2 from 'ssh2';

/** About one in a hundred keys that the library generates is one it cannot parse. */
const ATTEMPTS = 20;

/** The SSH key that opens the guests of a service, in OpenSSH's formats. */
export interface SshKey {
  readonly privateKey: string;
  readonly publicKey: string;
}

/** The service's SSH key, generated on first use. A key that cannot be parsed never opened a guest, so it is replaced. */
export async function ensureSshKey(path: string, generate = generateSshKey): Promise<SshKey> {
  const known = await readSshKey(path);
  if (known !== undefined && isUsable(known)) return known;
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const key = generate();
    if (!isUsable(key)) continue;
    await writeFileAtomic(path, JSON.stringify(key));
    return key;
  }
  throw new Error('cannot generate a usable SSH key');
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
