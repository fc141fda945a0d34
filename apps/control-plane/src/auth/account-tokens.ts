import { randomUUID } from 'node:crypto';
import { mkdir, readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { ServiceError } from '@svc/contract';
import { writeFileAtomic } from '@svc/service-kit';
import {
  calculateJwkThumbprint,
  createLocalJWKSet,
  exportJWK,
  generateKeyPair,
  importJWK,
  type JWK,
  type JWTVerifyGetKey,
  jwtVerify,
  SignJWT,
} from 'jose';

const ALGORITHM = 'EdDSA';
const AUDIENCE = 'svc-account';
const ISSUER = 'svc';
const LIFETIME_SECONDS = 3600;
/** The newest key signs; one older key still verifies, so that a rotation ends no session. */
const KEYS_KEPT = 2;

/** Signs and checks account JWTs. */
export class AccountTokens {
  readonly #keys: readonly JWK[];
  readonly #verificationKeys: JWTVerifyGetKey;

  private constructor(keys: readonly JWK[]) {
    this.#keys = keys;
    this.#verificationKeys = createLocalJWKSet({ keys: keys.map(publicPart) });
  }

  /** Reads the signing keys, newest first, from a JWKS file; makes the file if there is none. */
  static async open(file: string): Promise<AccountTokens> {
    const stored = await readFile(file, 'utf8').catch(ignoreMissing);
    if (stored === undefined) return new AccountTokens(await createKeyFile(file));
    const { keys }: { keys: JWK[] } = JSON.parse(stored);
    return new AccountTokens(keys.slice(0, KEYS_KEPT));
  }

  async sign(account: { tenantId: string; email: string }): Promise<string> {
    const [jwk] = this.#keys;
    if (jwk?.kid === undefined) throw new Error('The account key file holds no key.');
    return new SignJWT({ email: account.email })
      .setProtectedHeader({ alg: ALGORITHM, kid: jwk.kid, typ: 'JWT' })
      .setIssuer(ISSUER)
      .setAudience(AUDIENCE)
      .setSubject(account.tenantId)
      .setJti(randomUUID())
      .setIssuedAt()
      .setExpirationTime(`${LIFETIME_SECONDS}s`)
      .sign(await importJWK(jwk, ALGORITHM));
  }

  /** The tenant id that a token was signed for. @throws ServiceError `unauthorized` */
  async verify(token: string): Promise<string> {
    try {
      const { payload } = await jwtVerify(token, this.#verificationKeys, {
        algorithms: [ALGORITHM],
        issuer: ISSUER,
        audience: AUDIENCE,
        requiredClaims: ['sub', 'exp', 'iat', 'jti'],
      });
      return payload.sub ?? '';
    } catch (cause) {
      throw new ServiceError('unauthorized', undefined, { cause });
    }
  }
}

async function createKeyFile(file: string): Promise<JWK[]> {
  const { privateKey } = await generateKeyPair(ALGORITHM, { extractable: true });
  const jwk = await exportJWK(privateKey);
  const keys = [{ ...jwk, kid: await calculateJwkThumbprint(jwk), alg: ALGORITHM, use: 'sig' }];
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  await writeFileAtomic(file, JSON.stringify({ keys }));
  return keys;
}

function publicPart({ d: _secret, ...key }: JWK): JWK {
  return key;
}

function ignoreMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error;
  return undefined;
}
