/**
 * Session tokens: HS256 JWTs with {@link SessionClaims}, under keys derived from the cluster secret. Those for
 * runtime hosts go to customers and live as long as the session; those for workers are minted by a runtime host
 * for one upgrade. Each kind has its own key, so neither is accepted in place of the other.
 */

import { hkdfSync } from 'node:crypto';
import { HOP_TOKEN_SECONDS, ServiceError, SessionClaims } from '@svc/contract';
import { jwtVerify, SignJWT } from 'jose';
import { Value } from 'typebox/value';
import type { Secret } from '../secret.ts';

const ALGORITHM = 'HS256';
const CLOCK_TOLERANCE_SECONDS = 5;

/** The audience of a session token. */
export type SessionTokenAudience = 'runtime' | 'worker';

/** The claims of a token except its expiry. */
export type SessionIdentity = Omit<SessionClaims, 'exp'>;

/** Mints and verifies the session tokens of one audience. */
export class SessionTokens {
  readonly #key: Uint8Array;

  constructor(secret: Secret, audience: SessionTokenAudience) {
    this.#key = new Uint8Array(
      hkdfSync('sha256', secret.reveal(), '', `svc session tokens v1 ${audience}`, 32),
    );
  }

  /** A token that expires at `expiresAt`; default: after the time that a hop needs. */
  mint(identity: SessionIdentity, expiresAt?: Date): Promise<string> {
    return new SignJWT({ ...identity })
      .setProtectedHeader({ alg: ALGORITHM })
      .setExpirationTime(expiresAt ?? `${HOP_TOKEN_SECONDS}s`)
      .sign(this.#key);
  }

  /** @throws ServiceError `unauthorized` for a token that is absent, malformed, foreign or expired */
  async verify(token: string | undefined): Promise<SessionClaims> {
    if (token === undefined) throw new ServiceError('unauthorized');
    try {
      const { payload } = await jwtVerify(token, this.#key, {
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
