import type { Config } from '@svc/config';
import type { Logger } from '@svc/service-kit/logging';
import type { Shutdown } from '@svc/service-kit/process';
import type { ServicePaths } from '../paths.ts';
import type { DrainPlan } from '../stop/drain-plan.ts';

/** The input of every component. Each component adds its own tasks to `shutdown`. */
export interface ComponentContext {
  readonly config: Config;
  readonly paths: ServicePaths;
  readonly logger: Logger;
  readonly shutdown: Shutdown;
  /** Aborts a start in progress. */
  readonly signal: AbortSignal;
  /** Called at shutdown: whether the sandboxes keep running for the next start. */
  readonly keepSandboxes: () => boolean;
  readonly drain: DrainPlan;
}
