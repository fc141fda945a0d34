/**
 * The short-lived tokens that authenticate control planes, runtime hosts and workers to each other: signed with the caller's
 * key, with the caller as `iss` and the callee as `aud`.
 */

import type { KeyPair } from './key-pair.ts';
import { type KeyFinder, signToken, verifyToken } from './signed-tokens.ts';

const TYPE = 'svc-internal+jwt';
const LIFETIME_SECONDS = 60;
/** A token is reused while at least half of its lifetime is left. */
const REUSE_MS = 30_000;
/** Maximum number of cached audiences, which are workers of the fleet. */
const CACHE_SIZE = 1024;

/** Returns a token for calls to `audience`. */
export type TokenMinter = (audience: string) => Promise<string>;

/**
 * Verifies the Authorization header of an internal request and returns the caller.
 * @throws ServiceError `unauthorized`
 */
export type TokenVerifier = (authorization: string | undefined) => Promise<{ issuer: string }>;

/** Mints tokens for the caller named `issuer`. @param key of the caller; a function where it can be replaced */
export function createTokenMinter(key: KeyPair | (() => KeyPair), issuer: string): TokenMinter {
  const currentKey = typeof key === 'function' ? key : () => key;
  const cache = new Map<string, { token: Promise<string>; until: number }>();
  return (audience) => {
    const now = Date.now();
    const cached = cache.get(audience);
    if (cached !== undefined && now < cached.until) return cached.token;
    if (cache.size >= CACHE_SIZE) cache.clear();
    const token = signToken(currentKey(), {
      type: TYPE,
      issuer,
      audience,
      lifetimeSeconds: LIFETIME_SECONDS,
    });
    cache.set(audience, { token, until: now + REUSE_MS });
    return token;
  };
}

/** Verifies tokens for `audience`. */
export function createTokenVerifier(findKey: KeyFinder, audience: string): TokenVerifier {
  return async (authorization) => {
    const token = /^Bearer ([A-Za-z0-9._-]+)$/.exec(authorization ?? '')?.[1];
    const { iss } = await verifyToken(token, findKey, {
      typ: TYPE,
      audience,
      maxTokenAge: LIFETIME_SECONDS,
    });
    return { issuer: iss };
  };
}
