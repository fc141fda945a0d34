/** `/v1/sandboxes/{id}/ports/{port}/…`: the servers in a sandbox. */

import { type Static, Type } from 'typebox';
import { ServiceError } from '../errors/service-error.ts';
import { GUEST_LINK } from '../guest/guest-link.ts';
import { SandboxId } from '../ids.ts';
import { LIMITS } from '../limits.ts';
import { Timestamp } from '../schema.ts';

const PORT = /^[1-9][0-9]{0,4}$/;
const HIGHEST_PORT = 65_535;
/** The guest's own servers are not for customers. */
const RESERVED: ReadonlySet<number> = new Set(Object.values(GUEST_LINK.guestPorts));

/** The port that a path names. @throws ServiceError `port_not_allowed` */
export function parsePort(text: string): number {
  if (!PORT.test(text)) throw new ServiceError('port_not_allowed');
  return checkPort(Number(text));
}

/** @throws ServiceError `port_not_allowed` for a port that does not exist or belongs to the sandbox itself */
export function checkPort(port: number): number {
  const exists = Number.isInteger(port) && port >= 1 && port <= HIGHEST_PORT;
  if (!exists || RESERVED.has(port)) throw new ServiceError('port_not_allowed');
  return port;
}

/** The wildcard is the path at the port. A malformed port is `port_not_allowed`, like any other that is none. */
export const PortParams = Type.Object({ id: SandboxId, port: Type.String(), '*': Type.String() });
export type PortParams = Static<typeof PortParams>;

/** `POST /v1/sandboxes/{id}/links`. */
export const CreatePortLinkRequest = Type.Object(
  {
    port: Type.Integer({ description: 'The port of the sandbox.' }),
    expires_in_seconds: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: LIMITS.portLinkSecondsMax,
        default: LIMITS.portLinkSecondsDefault,
      }),
    ),
  },
  { title: 'CreatePortLinkRequest' },
);
export type CreatePortLinkRequest = Static<typeof CreatePortLinkRequest>;

export const PortLink = Type.Object(
  {
    url: Type.String({
      format: 'uri',
      description: 'Opens the port without another credential. Treat it as a secret.',
    }),
    expires_at: Timestamp,
  },
  { title: 'PortLink' },
);
export type PortLink = Static<typeof PortLink>;
