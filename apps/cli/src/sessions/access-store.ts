import { mkdir, readdir, readFile, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { SessionAccess } from '@svc/sdk';
import { writeFileAtomic } from '@svc/service-kit/process';
import { loginFile } from '../connection/credentials.ts';

/** Limit on the files that one clean-up examines. */
const MAX_FILES = 1_000;

/**
 * Stores the connection URL and token of each session that was started or resumed here, because the service returns
 * them only once.
 */
export class SessionAccessStore {
  readonly #directory: string;

  constructor(directory = join(dirname(loginFile()), 'sessions')) {
    this.#directory = directory;
  }

  /** Saves the access data of a session, readable only by its owner, and removes expired data. */
  async save(access: SessionAccess): Promise<void> {
    await mkdir(this.#directory, { recursive: true, mode: 0o700 });
    await this.#removeExpired();
    const text = `${JSON.stringify(access, null, 2)}\n`;
    await writeFileAtomic(this.#fileOf(access.chat_session_id), text, { mode: 0o600 });
  }

  /** The access data of a session; undefined if it is not stored here or has expired. */
  async find(id: string): Promise<SessionAccess | undefined> {
    return this.#read(this.#fileOf(id));
  }

  async remove(id: string): Promise<void> {
    await rm(this.#fileOf(id), { force: true });
  }

  #fileOf(id: string): string {
    return join(this.#directory, `${encodeURIComponent(id)}.json`);
  }

  async #removeExpired(): Promise<void> {
    const names = (await readdir(this.#directory)).filter((name) => name.endsWith('.json'));
    for (const name of names.slice(0, MAX_FILES)) {
      const file = join(this.#directory, name);
      if ((await this.#read(file)) === undefined) await rm(file, { force: true });
    }
  }

  async #read(file: string): Promise<SessionAccess | undefined> {
    const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return '';
      throw error;
    });
    try {
      const value: unknown = JSON.parse(text);
      return isAccess(value) && Date.parse(value.expires_at) > Date.now() ? value : undefined;
    } catch {
      return undefined;
    }
  }
}

function isAccess(value: unknown): value is SessionAccess {
  if (typeof value !== 'object' || value === null) return false;
  const fields = value as Record<string, unknown>;
  const names = ['chat_session_id', 'jwt', 'connect_url', 'expires_at'];
  return names.every((name) => typeof fields[name] === 'string');
}
