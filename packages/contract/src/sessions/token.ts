/** The claims of session JWTs. One kind, signed with HS256, opens the WebSocket; the other is for the hop to the worker. */

import { type Static, Type } from 'typebox';

/** The app and the capability set of agents outside sessions. */
export const DEFAULT_APP = 'svc-sandbox';
export const DEFAULT_SET = 'default';

export const SessionClaims = Type.Object({
  user_id: Type.String(),
  app_id: Type.String({ default: DEFAULT_APP }),
  set_id: Type.String({ default: DEFAULT_SET }),
  chat_session_id: Type.String(),
  exp: Type.Integer(),
  cua_enabled: Type.Boolean({ default: false }),
});
export type SessionClaims = Static<typeof SessionClaims>;

/** Lifetime of the token for the hop to the worker, which is minted for each upgrade, in seconds. */
export const HOP_TOKEN_SECONDS = 60;
