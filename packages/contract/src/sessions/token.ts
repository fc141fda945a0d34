/** Session JWTs, signed with HS256. One kind opens the WebSocket; the other is for the hop to the worker. */

import { type Static, Type } from 'typebox';

export const SessionClaims = Type.Object({
  user_id: Type.String(),
  app_id: Type.String({ default: 'svc-sandbox' }),
  set_id: Type.String({ default: 'default' }),
  chat_session_id: Type.String(),
  exp: Type.Integer(),
  cua_enabled: Type.Boolean({ default: false }),
});
export type SessionClaims = Static<typeof SessionClaims>;

/** Lifetime of the token that a runtime host mints for each upgrade, in seconds. */
export const HOP_TOKEN_SECONDS = 60;
