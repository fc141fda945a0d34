/** The identities of a fleet's components: their key pairs, how they enrol them, and the keys of control planes. */

import { type Static, Type } from 'typebox';

/** `iss` and `aud` of control planes in internal tokens. Other components use their own id. */
export const CONTROL_PLANE_NAME = 'svc-control-plane';

/** The kinds of components that enrol. */
export const ComponentKind = Type.Union([Type.Literal('worker'), Type.Literal('runtime')]);
export type ComponentKind = Static<typeof ComponentKind>;

/** The id of a worker or a runtime host. */
export const ComponentId = Type.String({ pattern: '^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$' });

/** An Ed25519 public key as a JWK (RFC 8037). */
export const PublicKey = Type.Object({
  kty: Type.Literal('OKP'),
  crv: Type.Literal('Ed25519'),
  x: Type.String({ pattern: '^[A-Za-z0-9_-]{43}$' }),
});
export type PublicKey = Static<typeof PublicKey>;

/**
 * `POST /internal/v1/components` of the control plane, for everybody who has an enrolment token: makes a public key that of the
 * component with this id. Repeating the request changes nothing. 401 `enrolment_token_invalid` for a token that is malformed,
 * expired or for another kind of component, 409 `enrolment_token_used` for one that has been used up, and 409
 * `component_id_in_use` for an id with another key, unless the token was made for this id.
 */
export const EnrolRequest = Type.Object({
  token: Type.String({ maxLength: 4096 }),
  kind: ComponentKind,
  component_id: ComponentId,
  public_key: PublicKey,
});
export type EnrolRequest = Static<typeof EnrolRequest>;

/** `GET /internal/v1/keys` of the control plane: the public keys of control planes, as a JWK set (RFC 7517). */
export const KeySet = Type.Object({
  keys: Type.Array(
    Type.Object({
      kty: Type.String(),
      crv: Type.String(),
      x: Type.String(),
      kid: Type.String(),
    }),
  ),
});
export type KeySet = Static<typeof KeySet>;
