import { createHash, timingSafeEqual } from 'node:crypto';

/** The token of the link. Only its digest is kept in the guest's memory. */
export class LinkToken {
  readonly #digest: Buffer;

  constructor(token: string) {
    this.#digest = digest(token);
  }

  /** Compares in constant time. */
  matches(token: string): boolean {
    return timingSafeEqual(digest(token), this.#digest);
  }
}

function digest(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}
