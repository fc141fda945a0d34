import { SingleFlight } from '@svc/service-kit/concurrency';
import type { SigningKeyRow, Store } from '@svc/store';
import { calculateJwkThumbprint, exportJWK, generateKeyPair, importJWK, type JWK } from 'jose';
import { seal, unseal } from '../crypto/seal.ts';

export const SIGNING_ALGORITHM = 'EdDSA';
/** The newest key signs; one older key still verifies, so that a rotation ends no session. */
const KEYS_KEPT = 2;
const ROTATE_AFTER_MS = 30 * 86_400_000;
/** A token with an unknown key makes the keys be read again, but not more often than this. */
const RELOAD_EVERY_MS = 5_000;

type ImportedKey = Awaited<ReturnType<typeof importJWK>>;

interface SigningKey {
  readonly kid: string;
  readonly privateKey: ImportedKey;
  readonly publicKey: ImportedKey;
  readonly createdAt: number;
}

/**
 * The keys of account tokens: Ed25519, made when needed, changed every 30 days, the same on every
 * control plane of one ledger. The ledger holds them sealed.
 */
export class SigningKeys {
  readonly #store: Store['signingKeys'];
  readonly #sealingKey: Buffer;
  readonly #loading = new SingleFlight<readonly SigningKey[]>();
  #keys: readonly SigningKey[] = [];
  #loadedAt = Number.NEGATIVE_INFINITY;

  /** `sealingKey`: 32 bytes that are not in the ledger. */
  constructor(store: Store['signingKeys'], sealingKey: Buffer) {
    this.#store = store;
    this.#sealingKey = sealingKey;
  }

  /** The key to sign with now. */
  async signingKey(): Promise<SigningKey> {
    const [newest] = this.#keys.length > 0 ? this.#keys : await this.#load();
    if (newest !== undefined && Date.now() - newest.createdAt < ROTATE_AFTER_MS) return newest;
    return this.rotate();
  }

  /** The public key of this id, while it is one of the newest. */
  async verificationKey(kid: string): Promise<ImportedKey | undefined> {
    const known = this.#keys.find((key) => key.kid === kid);
    if (known !== undefined) return known.publicKey;
    if (Date.now() - this.#loadedAt < RELOAD_EVERY_MS) return undefined;
    return (await this.#load()).find((key) => key.kid === kid)?.publicKey;
  }

  /** Makes a new key the newest; where another control plane was first, its key is taken. */
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

  /** Undefined for a key that was sealed with another secret: its tokens are worth nothing here. */
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
