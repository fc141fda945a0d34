/** The control plane's API for runtime hosts, below `/internal/v1/runtime-hosts`. Sessions are in `session.ts`. */

import { type Static, Type } from 'typebox';
import { ShortText } from './bounds.ts';

/** A process of a runtime host. */
export const RuntimeHostParams = Type.Object({ runtime_host_id: Type.String({ format: 'uuid' }) });
export type RuntimeHostParams = Static<typeof RuntimeHostParams>;

/** What a runtime host reports while it runs. `name`: what its operator knows it by, such as a host name and a port. */
export const RuntimeHostReport = Type.Object({ name: ShortText(1) });
export type RuntimeHostReport = Static<typeof RuntimeHostReport>;

/** A runtime host reports this often. */
export const RUNTIME_HOST_REPORT_MS = 5_000;
