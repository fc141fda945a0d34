import { createHash, randomBytes } from 'node:crypto';
import { mkdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type Config, ConfigError, secretKey } from '@svc/config';
import { type Secret, writeFileAtomic } from '@svc/service-kit';

const KEY_BYTES = 32;

/** A key that wraps the data keys of bundles. */
export interface MasterKey {
  /** Identifies the key without revealing it. */
  readonly id: string;
  readonly bytes: Buffer;
}

/** Settings of the keyring. */
export type MasterKeySettings = Pick<
  Config,
  'dataDir' | 'masterKey' | 'masterKeyFile' | 'masterKeyPrevious'
>;

/**
 * The master keys of this process, newest first: those of the environment, then those of the file, one per line. The file is
 * the operator's, or else `keys/master-key` in the data directory, with generated keys.
 */
export class MasterKeyring {
  /** File of the keys that the environment does not provide. */
  readonly file: string;
  readonly #isFileOfOperator: boolean;
  readonly #configured: readonly MasterKey[];
  #kept: readonly MasterKey[] = [];

  private constructor(settings: MasterKeySettings) {
    const { dataDir, masterKey, masterKeyFile, masterKeyPrevious } = settings;
    this.file = masterKeyFile ?? join(dataDir, 'keys', 'master-key');
    this.#isFileOfOperator = masterKeyFile !== undefined;
    this.#configured = [masterKey, masterKeyPrevious]
      .filter((secret) => secret !== undefined)
      .map(keyOf);
  }

  static async open(settings: MasterKeySettings): Promise<MasterKeyring> {
    const ring = new MasterKeyring(settings);
    await ring.reload();
    return ring;
  }

  /** Whether the operator provides the keys. Otherwise they are generated. */
  get isConfigured(): boolean {
    return this.#configured.length > 0 || this.#isFileOfOperator;
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

  /** Generates a key and adds it to the file as the newest. @throws ConfigError for a file of the operator, which has none */
  async create(): Promise<MasterKey> {
    if (this.#isFileOfOperator) {
      throw new ConfigError([`there is no master key in SVC_MASTER_KEY_FILE, ${this.file}`]);
    }
    const key = keyOfBytes(randomBytes(KEY_BYTES));
    await this.#write([key, ...this.#kept]);
    return key;
  }

  /** Removes every other key from the file, unless it is the operator's. */
  async keepOnly(id: string): Promise<void> {
    if (this.#isFileOfOperator) return;
    const kept = this.#kept.filter((key) => key.id === id);
    if (kept.length > 0 && kept.length < this.#kept.length) await this.#write(kept);
  }

  /** Reads the file again. @throws ConfigError when it cannot be used; the keys that are known stay */
  async reload(): Promise<void> {
    const text = await readFile(this.file, 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT' && !this.#isFileOfOperator) return '';
      throw new ConfigError([`the file of the master keys cannot be read: ${error.message}`]);
    });
    const lines = text.split('\n').map((line) => line.trim());
    this.#kept = lines.filter(Boolean).map((line) => {
      const key = secretKey.convert(line);
      if (key !== undefined) return keyOf(key);
      const number = lines.indexOf(line) + 1;
      throw new ConfigError([
        `line ${number} of ${this.file} is no master key: ${KEY_BYTES} bytes in base64 or hex`,
      ]);
    });
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
