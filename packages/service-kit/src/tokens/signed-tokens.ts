/**
 * What the kinds of tokens that components sign have in common: EdDSA, an id of the key, and a type, so that none passes for
 * another (RFC 8725).
 */

import { type PublicKey, ServiceError } from '@svc/contract';
import {
  decodeJwt,
  decodeProtectedHeader,
  type JWTPayload,
  type JWTVerifyOptions,
  jwtVerify,
  SignJWT,
} from 'jose';
import type { KeyPair } from './key-pair.ts';

const ALGORITHM = 'EdDSA';
/** The clock of one machine of a fleet may be off by more than a minute, which must not cut the machine off. */
const CLOCK_TOLERANCE_SECONDS = 90;

/** Finds the public key that a token claims to be signed with. Undefined when the issuer has no such key. */
export type KeyFinder = (claimed: {
  readonly issuer: string;
  readonly keyId: string;
}) => Promise<PublicKey | undefined>;

/** Finds keys among a few, whatever the issuer. */
export function findAmong(...keys: readonly KeyPair[]): KeyFinder {
  const known = new Map(keys.map(({ id, publicKey }) => [id, publicKey]));
  return async ({ keyId }) => known.get(keyId);
}

/** A token with its claims, and those that every token has. */
export interface TokenContent {
  readonly type: string;
  readonly issuer: string;
  readonly audience: string;
  readonly lifetimeSeconds: number;
  readonly claims?: JWTPayload;
}

export function signToken(key: KeyPair, content: TokenContent): Promise<string> {
  return new SignJWT(content.claims)
    .setProtectedHeader({ alg: ALGORITHM, kid: key.id, typ: content.type })
    .setIssuer(content.issuer)
    .setAudience(content.audience)
    .setIssuedAt()
    .setExpirationTime(`${content.lifetimeSeconds}s`)
    .sign(key.privateKey);
}

/**
 * Verifies a token, and returns its claims.
 * @throws ServiceError `unauthorized` for a token that is absent, malformed, foreign or expired; whatever `findKey` throws
 */
export async function verifyToken(
  token: string | undefined,
  findKey: KeyFinder,
  options: Pick<JWTVerifyOptions, 'typ' | 'audience' | 'maxTokenAge'>,
): Promise<JWTPayload & { readonly iss: string }> {
  const claimed = token === undefined ? undefined : claimsOf(token);
  const key = claimed && (await findKey(claimed));
  if (token === undefined || key === undefined) throw new ServiceError('unauthorized');
  try {
    const { payload } = await jwtVerify(token, key, {
      ...options,
      algorithms: [ALGORITHM],
      requiredClaims: ['iss', 'aud', 'exp', 'iat'],
      clockTolerance: CLOCK_TOLERANCE_SECONDS,
    });
    return { ...payload, iss: claimed?.issuer ?? '' };
  } catch (cause) {
    throw new ServiceError('unauthorized', undefined, { cause });
  }
}

/** What a token says about its signature, before that is verified. Undefined for one that is malformed. */
function claimsOf(token: string): { readonly issuer: string; readonly keyId: string } | undefined {
  try {
    const { kid: keyId } = decodeProtectedHeader(token);
    const { iss: issuer } = decodeJwt(token);
    return keyId === undefined || issuer === undefined ? undefined : { issuer, keyId };
  } catch {
    return undefined;
  }
}
