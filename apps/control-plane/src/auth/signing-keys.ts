import { setTimeout as delay } from 'node:timers/promises';
import { SingleFlight } from '@svc/service-kit/concurrency';
import type { AgedSigningKey, Store } from '@svc/store';
import { calculateJwkThumbprint, exportJWK, generateKeyPair, importJWK, type JWK } from 'jose';
import type { DerivedKeys } from '../crypto/cluster-secrets.ts';
import { seal, unseal } from '../crypto/seal.ts';

export const SIGNING_ALGORITHM = 'EdDSA';
/** A key signs until it has this age. */
const SIGNING_SECONDS = 30 * 86_400;
/**
 * Until it has this age, a key verifies and is kept. The day in between is longer than a token lives, and covers control
 * planes that notice late that a key has been replaced.
 */
export const SIGNING_KEY_SECONDS = SIGNING_SECONDS + 86_400;
/** A control plane that signs reads the keys again after this time, to sign with the newest one. */
const REFRESH_MS = 600_000;
/** Tokens with an unknown key make the keys be read again, at most this often. */
const RELOAD_EVERY_MS = 1_000;
/** Another control plane may add a key that cannot be opened here, while the cluster secret is being changed. */
const ROTATION_ATTEMPTS = 3;
/** A JWK thumbprint (RFC 7638) with SHA-256. */
const KID = /^[A-Za-z0-9_-]{43}$/;

type ImportedKey = Awaited<ReturnType<typeof importJWK>>;

interface SigningKey {
  readonly kid: string;
  readonly privateKey: ImportedKey;
  readonly publicKey: ImportedKey;
  /** When it stops to sign, in the time of `performance.now()`. */
  readonly signsUntil: number;
}

/**
 * The Ed25519 keys of account tokens. They are created on demand, replaced after 30 days, and stored encrypted in the
 * ledger, so that all its control planes share them. The newest key signs; all keys that can have signed a token that is
 * still alive verify.
 */
export class SigningKeys {
  readonly #store: Pick<Store['signingKeys'], 'youngerThan' | 'addUnlessYounger'>;
  readonly #sealingKeys: DerivedKeys;
  readonly #signing = new SingleFlight<SigningKey>();
  /** Newest first. */
  #keys: readonly SigningKey[] = [];
  /** Ids of the keys that were encrypted with another secret: their tokens are not valid here. */
  #unusable: readonly string[] = [];
  /** When the keys above were read. */
  #readAt = Number.NEGATIVE_INFINITY;
  /** When the keys were last asked for, successfully or not. */
  #askedAt = Number.NEGATIVE_INFINITY;
  /** A read that has not begun. */
  #nextRead: Promise<void> | undefined;

  /** @param sealingKeys 32 bytes each, not stored in the ledger: the first seals, each opens */
  constructor(
    store: Pick<Store['signingKeys'], 'youngerThan' | 'addUnlessYounger'>,
    sealingKeys: DerivedKeys,
  ) {
    this.#store = store;
    this.#sealingKeys = sealingKeys;
  }

  /** The current signing key, which is created if there is none. */
  async signingKey(): Promise<SigningKey> {
    const isFresh = performance.now() - this.#readAt < REFRESH_MS;
    return (isFresh ? this.#current() : undefined) ?? this.#signing.run(() => this.#renew());
  }

  /** The public key of this id, if it can have signed a token that is still alive. */
  async verificationKey(kid: string): Promise<ImportedKey | undefined> {
    const find = () => this.#keys.find((key) => key.kid === kid)?.publicKey;
    const known = find();
    if (known !== undefined || !KID.test(kid)) return known;
    await this.#reload();
    return find();
  }

  #current(): SigningKey | undefined {
    const [newest] = this.#keys;
    return newest !== undefined && performance.now() < newest.signsUntil ? newest : undefined;
  }

  /** Reads the keys. If none of them may sign, adds one; if another control plane was first, its key is used. */
  async #renew(): Promise<SigningKey> {
    await this.#load();
    for (let attempt = 0; attempt < ROTATION_ATTEMPTS; attempt += 1) {
      const current = this.#current();
      if (current !== undefined) return current;
      const key = await this.#newKey();
      await this.#store.addUnlessYounger(key, SIGNING_SECONDS, this.#unusable);
      await this.#load();
    }
    throw new Error('No signing key can be opened.');
  }

  async #newKey(): Promise<{ kid: string; sealed: Buffer }> {
    const { privateKey } = await generateKeyPair(SIGNING_ALGORITHM, { extractable: true });
    const jwk = await exportJWK(privateKey);
    const kid = await calculateJwkThumbprint(jwk);
    const sealed = seal(this.#sealingKeys[0], contextOf(kid), Buffer.from(JSON.stringify(jwk)));
    return { kid, sealed };
  }

  /**
   * Reads the keys after this call, so that it finds every key that was added before. Callers that come soon after the
   * last read wait for the next one and share it.
   */
  #reload(): Promise<void> {
    const pause = Math.max(0, this.#askedAt + RELOAD_EVERY_MS - performance.now());
    this.#nextRead ??= delay(pause).then(() => {
      // Later callers need a later read.
      this.#nextRead = undefined;
      return this.#load();
    });
    return this.#nextRead;
  }

  async #load(): Promise<void> {
    const startedAt = performance.now();
    this.#askedAt = startedAt;
    const rows = await this.#store.youngerThan(SIGNING_KEY_SECONDS);
    const opened = await Promise.all(rows.map((row) => this.#open(row, startedAt)));
    this.#keys = opened.filter((key) => key !== undefined);
    this.#unusable = rows
      .filter((_row, index) => opened[index] === undefined)
      .map(({ kid }) => kid);
    this.#readAt = startedAt;
  }

  async #open(row: AgedSigningKey, readAt: number): Promise<SigningKey | undefined> {
    const jwk = this.#unseal(row);
    if (jwk === undefined) return undefined;
    const { d: _secret, ...publicPart } = jwk;
    return {
      kid: row.kid,
      privateKey: await importJWK(jwk, SIGNING_ALGORITHM),
      publicKey: await importJWK(publicPart, SIGNING_ALGORITHM),
      signsUntil: readAt + (SIGNING_SECONDS - row.age_seconds) * 1000,
    };
  }

  #unseal(row: AgedSigningKey): JWK | undefined {
    for (const key of this.#sealingKeys) {
      try {
        return JSON.parse(unseal(key, contextOf(row.kid), row.sealed).toString());
      } catch {
        // It is sealed with another key.
      }
    }
    return undefined;
  }
}

function contextOf(kid: string): string {
  return `svc account signing key ${kid}`;
}
