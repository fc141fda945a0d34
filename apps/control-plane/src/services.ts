import type { HttpServer } from '@svc/service-kit';
import type { AuditTrail } from './audit/audit-trail.ts';
import type { Authenticators } from './auth/authenticators.ts';
import type { WorkerAuthenticator } from './auth/worker-authenticator.ts';
import type { Catalogue } from './catalogue/catalogue.ts';
import type { ApiKeys } from './keys/api-keys.ts';
import type { RateLimitHook } from './rate-limits/rate-limiter.ts';
import type { Reconciler } from './reconcile/reconciler.ts';
import type { SandboxCreator } from './sandboxes/create.ts';
import type { SandboxDeleter } from './sandboxes/delete.ts';
import type { SandboxLister } from './sandboxes/list.ts';
import type { SandboxReader } from './sandboxes/read.ts';
import type { SandboxUse } from './sandboxes/use.ts';
import type { SecretBundles } from './secrets/secret-bundles.ts';
import type { ConfigUpdates } from './sessions/config-updates.ts';
import type { SessionCreator } from './sessions/create.ts';
import type { KeptFiles } from './sessions/kept-files.ts';
import type { KeptState } from './sessions/kept-state.ts';
import type { SessionReader } from './sessions/read.ts';
import type { SessionResumer } from './sessions/resume.ts';
import type { SessionStopper } from './sessions/stop.ts';
import type { Tenants } from './tenants/tenants.ts';

/** Everything that routes call. */
export interface Services {
  readonly auth: Authenticators;
  readonly workerAuth: WorkerAuthenticator;
  readonly tenants: Tenants;
  readonly apiKeys: ApiKeys;
  readonly audit: AuditTrail;
  readonly catalogue: Catalogue;
  /** Limits what a tenant asks of the catalogue. */
  readonly templateRate: RateLimitHook;
  readonly secretBundles: SecretBundles;
  readonly creator: SandboxCreator;
  readonly reader: SandboxReader;
  readonly lister: SandboxLister;
  readonly deleter: SandboxDeleter;
  readonly use: SandboxUse;
  readonly sessionCreator: SessionCreator;
  readonly sessionResumer: SessionResumer;
  readonly sessionReader: SessionReader;
  readonly sessionStopper: SessionStopper;
  /** What workers keep of sessions. */
  readonly keptState: KeptState;
  readonly keptFiles: KeptFiles;
  readonly configUpdates: ConfigUpdates;
  readonly reconciler: Reconciler;
  /** Largest upload in bytes. */
  readonly uploadBytes: number;
  /** Settles when the control plane can serve. */
  readonly ready: () => Promise<void>;
  /** Every metric in the Prometheus text format. */
  readonly metrics: () => Promise<string>;
}

/** Adds one route to the server. */
export type Route = (app: HttpServer, services: Services) => void;
