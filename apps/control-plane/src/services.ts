import type { HttpServer } from '@svc/service-kit';
import type { Store } from '@svc/store';
import type { AgentVault } from './agents/agent-vault.ts';
import type { AuditTrail } from './audit/audit-trail.ts';
import type { Authenticators } from './auth/authenticators.ts';
import type { ComponentAuthenticator } from './auth/component-authenticator.ts';
import type { Enrolments } from './auth/enrolments.ts';
import type { Billing } from './billing/billing.ts';
import type { BillingUpkeep } from './billing/upkeep.ts';
import type { Payments } from './billing/wiring.ts';
import type { Catalogue } from './catalogue/catalogue.ts';
import type { StoredImages } from './images/stored-images.ts';
import type { ApiKeys } from './keys/api-keys.ts';
import type { Objects } from './objects/open-objects.ts';
import type { Ports } from './ports/ports.ts';
import type { RateLimitHook } from './rate-limits/rate-limiter.ts';
import type { Reconciler } from './reconcile/reconciler.ts';
import type { Sandboxes } from './sandboxes/sandboxes.ts';
import type { SecretBundles } from './secrets/secret-bundles.ts';
import type { Sessions } from './sessions/sessions.ts';
import type { Tenants } from './tenants/tenants.ts';
import type { UsageReports } from './usage/report-usage.ts';
import type { Usage } from './usage/usage.ts';
import type { MountedWorkspaces } from './workspaces/mounted/mounted-workspaces.ts';
import type { Workspaces } from './workspaces/workspaces.ts';

/** Everything that routes call, one entry per aggregate. */
export interface Services {
  readonly auth: Authenticators;
  readonly componentAuth: ComponentAuthenticator;
  readonly enrolments: Enrolments;
  readonly tenants: Tenants;
  readonly apiKeys: ApiKeys;
  readonly audit: AuditTrail;
  readonly billing: Billing;
  readonly payments: Payments;
  readonly billingUpkeep: BillingUpkeep;
  readonly catalogue: Catalogue;
  readonly secretBundles: SecretBundles;
  readonly objects: Objects;
  readonly sandboxes: Sandboxes;
  readonly ports: Ports;
  readonly sessions: Sessions;
  readonly workspaces: Workspaces;
  readonly mountedWorkspaces: MountedWorkspaces;
  readonly storedImages: StoredImages;
  readonly agentVault: AgentVault;
  readonly usage: Usage;
  readonly usageReports: UsageReports;
  readonly reconciler: Reconciler;
  readonly runtimeHosts: Pick<Store['runtimeHosts'], 'beat' | 'leave'>;
  readonly limits: Limits;
  readonly monitoring: Monitoring;
}

/** Limits that the operator sets. */
export interface Limits {
  /** Limits the requests of a tenant to the catalogue. */
  readonly catalogueRate: RateLimitHook;
  /** Limits the purchases that a tenant begins. */
  readonly checkoutRate: RateLimitHook;
  /** Largest upload, in bytes. */
  readonly uploadBytes: number;
}

/** The state of the control plane, for its operator. */
export interface Monitoring {
  /** Settles when the control plane can serve. */
  ready(): Promise<void>;
  /** Every metric in the Prometheus text format. */
  metrics(): Promise<string>;
}

/** Adds one route to the server. `Used` are the services that the route needs. */
export type Route<Used extends keyof Services = keyof Services> = (
  app: HttpServer,
  services: Pick<Services, Used>,
) => void;
