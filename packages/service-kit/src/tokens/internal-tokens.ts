/**
 * The short-lived tokens that authenticate control planes, runtime hosts and workers to each other: HS256 under a
 * key derived from the cluster secret, with the caller as `iss` and the callee as `aud`.
 */

import { hkdfSync } from 'node:crypto';
import { ServiceError } from '@svc/contract';
import { jwtVerify, SignJWT } from 'jose';
import type { Secret } from '../secret.ts';

const ALGORITHM = 'HS256';
const LIFETIME_SECONDS = 60;
/** A token is reused while at least half of its lifetime is left. */
const REUSE_MS = 30_000;
const CLOCK_TOLERANCE_SECONDS = 5;
/** Maximum number of cached audiences, which are workers of the fleet. */
const CACHE_SIZE = 1024;

/** Returns a token for calls to `audience`. */
export type TokenMinter = (audience: string) => Promise<string>;

/**
 * Verifies the Authorization header of an internal request and returns the caller.
 * @throws ServiceError `unauthorized`
 */
export type TokenVerifier = (authorization: string | undefined) => Promise<{ issuer: string }>;

/** Mints tokens for the caller named `issuer`. */
export function createTokenMinter(secret: Secret, issuer: string): TokenMinter {
  const key = deriveKey(secret);
  const cache = new Map<string, { token: Promise<string>; until: number }>();
  return (audience) => {
    const now = Date.now();
    const cached = cache.get(audience);
    if (cached !== undefined && now < cached.until) return cached.token;
    if (cache.size >= CACHE_SIZE) cache.clear();
    const token = sign(key, issuer, audience);
    cache.set(audience, { token, until: now + REUSE_MS });
    return token;
  };
}

/** Verifies tokens for `audience`. */
export function createTokenVerifier(secret: Secret, audience: string): TokenVerifier {
  const key = deriveKey(secret);
  return async (authorization) => {
    const token = /^Bearer ([A-Za-z0-9._-]+)$/.exec(authorization ?? '')?.[1];
    if (token === undefined) throw new ServiceError('unauthorized');
    try {
      const { payload } = await jwtVerify(token, key, {
        algorithms: [ALGORITHM],
        audience,
        requiredClaims: ['iss', 'exp', 'iat'],
        maxTokenAge: LIFETIME_SECONDS,
        clockTolerance: CLOCK_TOLERANCE_SECONDS,
      });
      return { issuer: String(payload.iss) };
    } catch (cause) {
      throw new ServiceError('unauthorized', undefined, { cause });
    }
  };
}

function sign(key: Uint8Array, issuer: string, audience: string): Promise<string> {
  return new SignJWT()
    .setProtectedHeader({ alg: ALGORITHM })
    .setIssuer(issuer)
    .setAudience(audience)
    .setIssuedAt()
    .setExpirationTime(`${LIFETIME_SECONDS}s`)
    .sign(key);
}

/** Derives a separate key for each purpose of the cluster secret. */
function deriveKey(secret: Secret): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', secret.reveal(), '', 'svc internal tokens v1', 32));
}
