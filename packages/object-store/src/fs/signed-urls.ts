import { createHmac, timingSafeEqual } from 'node:crypto';
import { checkKey } from '../object-key.ts';
import { ObjectStoreError } from '../object-store-error.ts';

/** Path of the URLs below their origin; the key follows. */
export const OBJECTS_PATH = '/objects/';

const PURPOSE = 'svc object URL v1';
const SECONDS = /^[1-9]\d{0,11}$/;
const BYTES = /^(?:0|[1-9]\d{0,15})$/;

/** What a URL is signed for. */
export interface UrlGrant {
  readonly method: 'GET' | 'PUT';
  readonly key: string;
  /** Seconds since the epoch. */
  readonly expires: number;
  /** The only size in bytes that an upload may have. */
  readonly size?: number | undefined;
}

/** The parameters of a signed URL, as text from its query. */
export interface UrlQuery {
  readonly expires?: string | undefined;
  readonly size?: string | undefined;
  readonly signature?: string | undefined;
}

/** Issues and checks the presigned URLs of a store that the control plane serves. */
export class SignedUrls {
  readonly #secrets: readonly [Uint8Array, ...Uint8Array[]];
  readonly #origin: () => string;
  readonly #path: string;

  /**
   * Every control plane has the same `secrets`, which are of this `path` only: the first signs, each verifies. `origin` is their public URL, without a
   * trailing slash.
   */
  constructor(
    secrets: readonly [Uint8Array, ...Uint8Array[]],
    origin: () => string,
    path = OBJECTS_PATH,
  ) {
    this.#secrets = secrets;
    this.#origin = origin;
    this.#path = path;
  }

  /** The URL for a grant. Its signature does not cover the origin, so that proxies may change it. */
  sign(grant: UrlGrant): string {
    const path = checkKey(grant.key).map(encodeURIComponent).join('/');
    const query = new URLSearchParams({ expires: String(grant.expires) });
    if (grant.size !== undefined) query.set('size', String(grant.size));
    query.set('signature', signatureOf(grant, this.#secrets[0]));
    return `${this.#origin()}${this.#path}${path}?${query}`;
  }

  /**
   * The grant of a URL that was requested with this method and for this decoded key.
   * @throws ObjectStoreError `object_url_invalid`, or `object_url_expired` if it was valid once
   */
  verify(method: 'GET' | 'PUT', key: string, query: UrlQuery): UrlGrant {
    const { expires = '', size, signature = '' } = query;
    if (!SECONDS.test(expires) || (size !== undefined && !BYTES.test(size))) throw invalidUrl();
    const grant: UrlGrant = {
      method,
      key,
      expires: Number(expires),
      size: size === undefined ? undefined : Number(size),
    };
    // As text: several texts decode to the same bytes.
    const given = Buffer.from(signature);
    const isValid = this.#secrets.some((secret) => {
      const expected = Buffer.from(signatureOf(grant, secret));
      return given.length === expected.length && timingSafeEqual(given, expected);
    });
    if (!isValid) throw invalidUrl();
    if (grant.expires * 1000 <= Date.now()) {
      throw new ObjectStoreError('object_url_expired', 'the URL has expired');
    }
    return grant;
  }
}

function signatureOf({ method, key, expires, size }: UrlGrant, secret: Uint8Array): string {
  const text = JSON.stringify([PURPOSE, method, key, expires, size ?? null]);
  return createHmac('sha256', secret).update(text).digest('base64url');
}

function invalidUrl(): ObjectStoreError {
  return new ObjectStoreError('object_url_invalid', 'the URL was not issued for this request');
}
