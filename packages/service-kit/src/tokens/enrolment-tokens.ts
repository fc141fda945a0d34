/** Tokens with which components that have no identity yet enrol. An operator makes them with the cluster secret. */

import { randomUUID } from 'node:crypto';
import { CONTROL_PLANE_NAME, ComponentKind, ServiceError } from '@svc/contract';
import { Type } from 'typebox';
import { Value } from 'typebox/value';
import type { KeyPair } from './key-pair.ts';
import { type KeyFinder, signToken, verifyToken } from './signed-tokens.ts';

const TYPE = 'svc-enrolment+jwt';
const ISSUER = 'svc-operator';

/** What a token allows. */
export interface Enrolment {
  readonly kind: ComponentKind;
  /** The only component that may use it. That may also replace the key that it had. Default: any with a new id. */
  readonly componentId?: string | undefined;
  /** How many components may enrol with it. */
  readonly uses: number;
}

const Claims = Type.Object({
  jti: Type.String(),
  exp: Type.Integer(),
  kind: ComponentKind,
  sub: Type.Optional(Type.String()),
  uses: Type.Integer({ minimum: 1 }),
});

export function mintEnrolmentToken(
  key: KeyPair,
  { kind, componentId, uses }: Enrolment,
  lifetimeSeconds: number,
): Promise<string> {
  return signToken(key, {
    type: TYPE,
    issuer: ISSUER,
    audience: CONTROL_PLANE_NAME,
    lifetimeSeconds,
    claims: {
      jti: randomUUID(),
      kind,
      uses,
      ...(componentId === undefined ? {} : { sub: componentId }),
    },
  });
}

/** Verifies a token. @throws ServiceError `enrolment_token_invalid` */
export async function verifyEnrolmentToken(
  token: string,
  findKey: KeyFinder,
): Promise<Enrolment & { readonly tokenId: string; readonly expiresAt: Date }> {
  try {
    const claims = await verifyToken(token, findKey, { typ: TYPE, audience: CONTROL_PLANE_NAME });
    const { jti, exp, kind, sub, uses } = Value.Parse(Claims, claims);
    return {
      kind,
      componentId: sub,
      uses,
      tokenId: jti,
      expiresAt: new Date(exp * 1000),
    };
  } catch (cause) {
    throw new ServiceError('enrolment_token_invalid', undefined, { cause });
  }
}
