import { ServiceError } from '@svc/contract';
import { verifyWithAny } from '@svc/service-kit';
import { SignJWT } from 'jose';
import { type Static, Type } from 'typebox';
import { Value } from 'typebox/value';
import type { DerivedKeys } from '../crypto/cluster-secrets.ts';

const ALGORITHM = 'HS256';
const AUDIENCE = 'svc-port-link';

const LinkClaims = Type.Object({
  tenant_id: Type.String(),
  /** The API key that made the link, whose revocation ends it. */
  key_id: Type.String(),
  vm_id: Type.String(),
  port: Type.Integer(),
});
/** What a link gives access to. */
export type LinkClaims = Static<typeof LinkClaims>;

/** Mints and verifies the tokens of links to ports. */
export class LinkTokens {
  readonly #keys: DerivedKeys;

  /** @param keys the first signs, each verifies */
  constructor(keys: DerivedKeys) {
    this.#keys = keys;
  }

  mint(claims: LinkClaims, expiresAt: Date): Promise<string> {
    return new SignJWT({ ...claims })
      .setProtectedHeader({ alg: ALGORITHM })
      .setAudience(AUDIENCE)
      .setExpirationTime(expiresAt)
      .sign(this.#keys[0]);
  }

  /** @throws ServiceError `unauthorized` for a token that is malformed, foreign or expired */
  async verify(token: string): Promise<LinkClaims> {
    try {
      const payload = await verifyWithAny(token, this.#keys, {
        algorithms: [ALGORITHM],
        audience: AUDIENCE,
        requiredClaims: ['exp'],
      });
      return Value.Parse(LinkClaims, payload);
    } catch (cause) {
      throw new ServiceError('unauthorized', undefined, { cause });
    }
  }
}
