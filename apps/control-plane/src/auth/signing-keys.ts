import { SingleFlight } from '@svc/service-kit/concurrency';
import type { SigningKeyRow, Store } from '@svc/store';
import { calculateJwkThumbprint, exportJWK, generateKeyPair, importJWK, type JWK } from 'jose';
import { seal, unseal } from '../crypto/seal.ts';

export const SIGNING_ALGORITHM = 'EdDSA';
/** The newest key signs. One older key still verifies, so that tokens survive a rotation. */
const KEYS_KEPT = 2;
const ROTATE_AFTER_MS = 30 * 86_400_000;
/** Tokens with an unknown key make the keys be read again, at most this often. */
const RELOAD_EVERY_MS = 5_000;

type ImportedKey = Awaited<ReturnType<typeof importJWK>>;

interface SigningKey {
  readonly kid: string;
  readonly privateKey: ImportedKey;
  readonly publicKey: ImportedKey;
  readonly createdAt: number;
}

/**
 * The Ed25519 keys of account tokens. They are created on demand, rotated every 30 days, and stored encrypted in
 * the ledger, so that all its control planes share them.
 */
export class SigningKeys {
  readonly #store: Store['signingKeys'];
  readonly #sealingKey: Buffer;
  readonly #loading = new SingleFlight<readonly SigningKey[]>();
  #keys: readonly SigningKey[] = [];
  #loadedAt = Number.NEGATIVE_INFINITY;

  /** `sealingKey`: 32 bytes, not stored in the ledger. */
  constructor(store: Store['signingKeys'], sealingKey: Buffer) {
    this.#store = store;
    this.#sealingKey = sealingKey;
  }

  /** The current signing key. */
  async signingKey(): Promise<SigningKey> {
    const [newest] = this.#keys.length > 0 ? this.#keys : await this.#load();
    if (newest !== undefined && Date.now() - newest.createdAt < ROTATE_AFTER_MS) return newest;
    return this.rotate();
  }

  /** The public key of this id, if it is among the newest. */
  async verificationKey(kid: string): Promise<ImportedKey | undefined> {
    const known = this.#keys.find((key) => key.kid === kid);
    if (known !== undefined) return known.publicKey;
    if (Date.now() - this.#loadedAt < RELOAD_EVERY_MS) return undefined;
    return (await this.#load()).find((key) => key.kid === kid)?.publicKey;
  }

  /** Adds a new key. If another control plane was first, its key is used. */
  async rotate(): Promise<SigningKey> {
    const replaces = (await this.#store.newest(1))[0]?.kid;
    const { privateKey } = await generateKeyPair(SIGNING_ALGORITHM, { extractable: true });
    const jwk = await exportJWK(privateKey);
    const kid = await calculateJwkThumbprint(jwk);
    const sealed = seal(this.#sealingKey, contextOf(kid), Buffer.from(JSON.stringify(jwk)));
    await this.#store.add({ kid, sealed }, replaces);
    const [newest] = await this.#load();
    if (newest === undefined) throw new Error('No signing key can be opened.');
    return newest;
  }

  #load(): Promise<readonly SigningKey[]> {
    return this.#loading.run(async () => {
      const rows = await this.#store.newest(KEYS_KEPT);
      const keys = await Promise.all(rows.map((row) => this.#open(row)));
      this.#keys = keys.filter((key) => key !== undefined);
      this.#loadedAt = Date.now();
      return this.#keys;
    });
  }

  /** Undefined for a key that was encrypted with another secret: its tokens are not valid here. */
  async #open(row: SigningKeyRow): Promise<SigningKey | undefined> {
    const jwk = this.#unseal(row);
    if (jwk === undefined) return undefined;
    const { d: _secret, ...publicPart } = jwk;
    return {
      kid: row.kid,
      privateKey: await importJWK(jwk, SIGNING_ALGORITHM),
      publicKey: await importJWK(publicPart, SIGNING_ALGORITHM),
      createdAt: row.created_at.getTime(),
    };
  }

  #unseal(row: SigningKeyRow): JWK | undefined {
    try {
      return JSON.parse(unseal(this.#sealingKey, contextOf(row.kid), row.sealed).toString());
    } catch {
      return undefined;
    }
  }
}

function contextOf(kid: string): string {
  return `svc account signing key ${kid}`;
}
