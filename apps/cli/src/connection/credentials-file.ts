import { mkdir, readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { writeFileAtomic } from '@svc/service-kit/process';

/** How to reach a service and as whom. */
export interface Credentials {
  readonly base_url: string;
  readonly api_key: string;
  readonly email: string;
  readonly tenant_id: string;
  /** The certificate authority to trust, when it is not one the system knows. */
  readonly ca_file?: string;
}

/** The credentials kept in `file`, or undefined when there are none. A file that is damaged counts as none. */
export async function readCredentials(file: string): Promise<Credentials | undefined> {
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return '';
    throw error;
  });
  try {
    const value: unknown = JSON.parse(text);
    return isCredentials(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Keeps credentials in `file`, readable by its owner alone. */
export async function writeCredentials(file: string, credentials: Credentials): Promise<void> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  await writeFileAtomic(file, `${JSON.stringify(credentials, null, 2)}\n`, { mode: 0o600 });
}

function isCredentials(value: unknown): value is Credentials {
  if (typeof value !== 'object' || value === null) return false;
  const fields = value as Record<string, unknown>;
  const required = ['base_url', 'api_key', 'email', 'tenant_id'];
  return (
    required.every((name) => typeof fields[name] === 'string') &&
    ['string', 'undefined'].includes(typeof fields.ca_file)
  );
}
