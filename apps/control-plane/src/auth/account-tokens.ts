import { randomUUID } from 'node:crypto';
import { isServiceError, ServiceError } from '@svc/contract';
import { type JWTVerifyGetKey, jwtVerify, SignJWT } from 'jose';
import { SIGNING_ALGORITHM, type SigningKeys } from './signing-keys.ts';

const AUDIENCE = 'svc-account';
const ISSUER = 'svc';
const LIFETIME_SECONDS = 3600;

/** Signs and verifies account JWTs. */
export class AccountTokens {
  readonly #keys: SigningKeys;
  readonly #keyOf: JWTVerifyGetKey;

  constructor(keys: SigningKeys) {
    this.#keys = keys;
    this.#keyOf = async ({ kid = '' }) => {
      const key = await keys.verificationKey(kid);
      if (key === undefined) throw new ServiceError('unauthorized');
      return key;
    };
  }

  async sign(account: { tenantId: string; email: string }): Promise<string> {
    const { kid, privateKey } = await this.#keys.signingKey();
    return new SignJWT({ email: account.email })
      .setProtectedHeader({ alg: SIGNING_ALGORITHM, kid, typ: 'JWT' })
      .setIssuer(ISSUER)
      .setAudience(AUDIENCE)
      .setSubject(account.tenantId)
      .setJti(randomUUID())
      .setIssuedAt()
      .setExpirationTime(`${LIFETIME_SECONDS}s`)
      .sign(privateKey);
  }

  /** The tenant id that a token was signed for. @throws ServiceError `unauthorized`, `database_unavailable` */
  async verify(token: string): Promise<string> {
    try {
      const { payload } = await jwtVerify(token, this.#keyOf, {
        algorithms: [SIGNING_ALGORITHM],
        issuer: ISSUER,
        audience: AUDIENCE,
        requiredClaims: ['sub', 'exp', 'iat', 'jti'],
      });
      return payload.sub ?? '';
    } catch (cause) {
      if (isServiceError(cause)) throw cause;
      throw new ServiceError('unauthorized', undefined, { cause });
    }
  }
}
