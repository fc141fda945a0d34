import type { Config } from '@svc/config';
import type { Logger } from '@svc/service-kit/logging';
import type { Shutdown } from '@svc/service-kit/process';
import type { Secret } from '@svc/service-kit/secret';
import type { ServicePlaces } from '../places.ts';

/** What every piece starts with. A piece adds its own ends to `shutdown`. */
export interface Piece {
  readonly config: Config;
  readonly places: ServicePlaces;
  readonly logger: Logger;
  /** By which the pieces know each other. */
  readonly secret: Secret;
  readonly shutdown: Shutdown;
  /** Stops a start that is under way. */
  readonly signal: AbortSignal;
  /** Asked at the end: whether the sandboxes live on for the next start. */
  readonly keepSandboxes: () => boolean;
}
