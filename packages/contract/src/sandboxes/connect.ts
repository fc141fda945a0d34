/** `POST /v1/sandboxes/{id}/connect`. */

import { type Static, Type } from 'typebox';
import { Timestamp } from '../schema.ts';

/** Opens the WebSocket of a sandbox's agent. */
export const SandboxAccess = Type.Object(
  {
    connect_url: Type.String({ format: 'uri', description: "WSS URL of the agent's frames." }),
    jwt: Type.String({ description: 'Opens the WebSocket. Lives as long as the sandbox may.' }),
    expires_at: Timestamp,
  },
  { title: 'SandboxAccess' },
);
export type SandboxAccess = Static<typeof SandboxAccess>;
