/**
 * The session tokens of customers: HS256 JWTs with {@link SessionClaims}, under a key derived from the cluster secret, which
 * only control planes have. They live as long as the session.
 */

import { hkdfSync } from 'node:crypto';
import { ServiceError, SessionClaims } from '@svc/contract';
import { SignJWT } from 'jose';
import { Value } from 'typebox/value';
import type { Secret } from '../secret.ts';
import { verifyWithAny } from './verify-with-any.ts';

const ALGORITHM = 'HS256';
const CLOCK_TOLERANCE_SECONDS = 5;

/** The claims of a token except its expiry. */
export type SessionIdentity = Omit<SessionClaims, 'exp'>;

/** Mints and verifies session tokens. */
export class SessionTokens {
  readonly #keys: readonly [Uint8Array, ...Uint8Array[]];

  /** @param keys from {@link sessionTokenKey}, which may change: the first signs, each verifies */
  constructor(keys: readonly [Uint8Array, ...Uint8Array[]]) {
    this.#keys = keys;
  }

  mint(identity: SessionIdentity, expiresAt: Date): Promise<string> {
    return new SignJWT({ ...identity })
      .setProtectedHeader({ alg: ALGORITHM })
      .setExpirationTime(expiresAt)
      .sign(this.#keys[0]);
  }

  /** @throws ServiceError `unauthorized` for a token that is absent, malformed, foreign or expired */
  async verify(token: string | undefined): Promise<SessionClaims> {
    if (token === undefined) throw new ServiceError('unauthorized');
    try {
      const payload = await verifyWithAny(token, this.#keys, {
        algorithms: [ALGORITHM],
        requiredClaims: ['exp'],
        clockTolerance: CLOCK_TOLERANCE_SECONDS,
      });
      return Value.Parse(SessionClaims, payload);
    } catch (cause) {
      throw new ServiceError('unauthorized', undefined, { cause });
    }
  }
}

/** The key of session tokens, derived from a cluster secret. */
export function sessionTokenKey(secret: Secret): Uint8Array {
  const purpose = 'svc session tokens v1 runtime';
  return new Uint8Array(hkdfSync('sha256', secret.reveal(), '', purpose, 32));
}
