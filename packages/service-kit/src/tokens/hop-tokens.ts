/** Tokens for the hop of a session's WebSocket from a runtime host to a worker: minted by a control plane for one upgrade. */

import { CONTROL_PLANE_NAME, HOP_TOKEN_SECONDS, ServiceError, SessionClaims } from '@svc/contract';
import { Value } from 'typebox/value';
import type { KeyPair } from './key-pair.ts';
import type { SessionIdentity } from './session-tokens.ts';
import { type KeyFinder, signToken, verifyToken } from './signed-tokens.ts';

const TYPE = 'svc-hop+jwt';

/** Lets the bearer attach to a session at one worker. */
export function mintHopToken(
  key: KeyPair,
  identity: SessionIdentity,
  workerId: string,
): Promise<string> {
  return signToken(key, {
    type: TYPE,
    issuer: CONTROL_PLANE_NAME,
    audience: workerId,
    lifetimeSeconds: HOP_TOKEN_SECONDS,
    claims: { ...identity },
  });
}

/** Verifies a hop token for this worker. @throws ServiceError `unauthorized` */
export type HopTokenVerifier = (token: string | undefined) => Promise<SessionClaims>;

/** Verifies hop tokens for one worker. */
export function createHopTokenVerifier(findKey: KeyFinder, workerId: string): HopTokenVerifier {
  return async (token) => {
    const claims = await verifyToken(token, findKey, { typ: TYPE, audience: workerId });
    if (claims.iss !== CONTROL_PLANE_NAME) throw new ServiceError('unauthorized');
    try {
      return Value.Parse(SessionClaims, claims);
    } catch (cause) {
      throw new ServiceError('unauthorized', undefined, { cause });
    }
  };
}
