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
  readonly #secrets: readonly [Secret, ...Secret[]];

  /** @param secrets cluster secrets, which may change: the first signs, each verifies */
  constructor(secrets: readonly [Secret, ...Secret[]]) {
    this.#secrets = secrets;
  }

  mint(identity: SessionIdentity, expiresAt: Date): Promise<string> {
    return new SignJWT({ ...identity })
      .setProtectedHeader({ alg: ALGORITHM })
      .setExpirationTime(expiresAt)
      .sign(keyOf(this.#secrets[0]));
  }

  /** @throws ServiceError `unauthorized` for a token that is absent, malformed, foreign or expired */
  async verify(token: string | undefined): Promise<SessionClaims> {
    if (token === undefined) throw new ServiceError('unauthorized');
    try {
      const [first, ...others] = this.#secrets;
      const payload = await verifyWithAny(token, [keyOf(first), ...others.map(keyOf)], {
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

function keyOf(secret: Secret): Uint8Array {
  const purpose = 'svc session tokens v1 runtime';
  return new Uint8Array(hkdfSync('sha256', secret.reveal(), '', purpose, 32));
}
