import { hash } from 'node:crypto';

/** Of a SHA-256: enough that no two paths of a workspace have the same. */
const DIGEST_BYTES = 12;

/**
 * The versions of the entries that a guest has, by path in base64url. Only these may its deletions delete. The paths, which a
 * guest can make as long as it likes, are not kept.
 */
export class Versions {
  readonly #byDigest = new Map<string, number>();

  get size(): number {
    return this.#byDigest.size;
  }

  has(path: string): boolean {
    return this.#byDigest.has(digestOf(path));
  }

  get(path: string): number | undefined {
    return this.#byDigest.get(digestOf(path));
  }

  set(path: string, version: number): void {
    this.#byDigest.set(digestOf(path), version);
  }

  delete(path: string): void {
    this.#byDigest.delete(digestOf(path));
  }

  clear(): void {
    this.#byDigest.clear();
  }
}

function digestOf(path: string): string {
  return hash('sha256', path, 'binary').slice(0, DIGEST_BYTES);
}
