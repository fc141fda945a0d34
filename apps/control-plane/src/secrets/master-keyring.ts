import { createHash, randomBytes } from 'node:crypto';
import { mkdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Config } from '@svc/config';
import { type Secret, writeFileAtomic } from '@svc/service-kit';

const KEY_BYTES = 32;

/** A key that wraps the data keys of bundles. */
export interface MasterKey {
  /** Identifies the key without revealing it. */
  readonly id: string;
  readonly bytes: Buffer;
}

/** Settings of the keyring. */
export type MasterKeySettings = Pick<Config, 'dataDir' | 'masterKey' | 'masterKeyPrevious'>;

/**
 * The master keys of this process, newest first: those of the environment, then those of `keys/master-key` in the
 * data directory, one per line.
 */
export class MasterKeyring {
  /** File of the keys that the environment does not provide. */
  readonly file: string;
  readonly #configured: readonly MasterKey[];
  #kept: readonly MasterKey[] = [];

  private constructor({ dataDir, masterKey, masterKeyPrevious }: MasterKeySettings) {
    this.file = join(dataDir, 'keys', 'master-key');
    this.#configured = [masterKey, masterKeyPrevious]
      .filter((secret) => secret !== undefined)
      .map(keyOf);
  }

  static async open(settings: MasterKeySettings): Promise<MasterKeyring> {
    const ring = new MasterKeyring(settings);
    await ring.reload();
    return ring;
  }

  /** Whether the operator provides the key. Keys in the file are generated. */
  get isConfigured(): boolean {
    return this.#configured.length > 0;
  }

  get newest(): MasterKey | undefined {
    return this.#configured[0] ?? this.#kept[0];
  }

  find(id: string): MasterKey | undefined {
    return [...this.#configured, ...this.#kept].find((key) => key.id === id);
  }

  /** The key of this id, even if it was added to the file just now. */
  async require(id: string): Promise<MasterKey> {
    if (this.find(id) === undefined) await this.reload();
    const key = this.find(id);
    if (key === undefined) throw new Error(`The master key ${id} is not known to this process.`);
    return key;
  }

  /** Generates a key and adds it to the file as the newest. */
  async create(): Promise<MasterKey> {
    const key = keyOfBytes(randomBytes(KEY_BYTES));
    await this.#write([key, ...this.#kept]);
    return key;
  }

  /** Removes every other key from the file. */
  async keepOnly(id: string): Promise<void> {
    const kept = this.#kept.filter((key) => key.id === id);
    if (kept.length > 0 && kept.length < this.#kept.length) await this.#write(kept);
  }

  async reload(): Promise<void> {
    const text = await readFile(this.file, 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return '';
      throw error;
    });
    this.#kept = text
      .split('\n')
      .filter((line) => line.trim() !== '')
      .map((line) => keyOfBytes(Buffer.from(line.trim(), 'base64')));
  }

  async #write(keys: readonly MasterKey[]): Promise<void> {
    await mkdir(dirname(this.file), { recursive: true, mode: 0o700 });
    const lines = keys.map((key) => `${key.bytes.toString('base64')}\n`);
    await writeFileAtomic(this.file, lines.join(''), { mode: 0o600 });
    this.#kept = keys;
  }
}

function keyOf(secret: Secret): MasterKey {
  return keyOfBytes(Buffer.from(secret.reveal(), 'base64'));
}

function keyOfBytes(bytes: Buffer): MasterKey {
  if (bytes.length !== KEY_BYTES) throw new Error(`A master key must have ${KEY_BYTES} bytes.`);
  const digest = createHash('sha256').update('svc master key id\0').update(bytes).digest('hex');
  return { id: digest.slice(0, 16), bytes };
}
