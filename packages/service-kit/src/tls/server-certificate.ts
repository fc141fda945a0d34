import { createPrivateKey, X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import type { CertificatePair } from './certificate.ts';

/** The certificate of servers, which can be replaced while they serve: new connections get the new one, open ones stay. */
export class ServerCertificate implements CertificatePair {
  readonly #listeners = new Set<(pair: CertificatePair) => void>();
  #pair: CertificatePair;

  constructor(pair: CertificatePair) {
    this.#pair = pair;
  }

  get cert(): string {
    return this.#pair.cert;
  }

  get key(): string {
    return this.#pair.key;
  }

  /** Replaces it. Returns whether it has changed. @throws for one that no server could use, which changes nothing */
  replace(pair: CertificatePair): boolean {
    if (pair.cert === this.cert && pair.key === this.key) return false;
    check(pair);
    this.#pair = { cert: pair.cert, key: pair.key };
    for (const listener of this.#listeners) listener(this.#pair);
    return true;
  }

  /** Calls `listener` after each replacement, until the returned function is called. */
  onReplaced(listener: (pair: CertificatePair) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }
}

/** @throws for a pair that no server could use */
function check({ cert, key }: CertificatePair): void {
  if (!new X509Certificate(cert).checkPrivateKey(createPrivateKey(key))) {
    throw new Error('the key is not that of the certificate');
  }
  createSecureContext({ cert, key });
}
