import { hkdfSync } from 'node:crypto';
import type { Config } from '@svc/config';
import { CONTROL_PLANE_NAME } from '@svc/contract';
import { EgressPolicy } from '@svc/egress';
import {
  createTokenMinter,
  createTokenVerifier,
  type Registry,
  type Secret,
  SessionTokens,
} from '@svc/service-kit';
import type { Store } from '@svc/store';
import type { FastifyBaseLogger } from 'fastify';
import { AgentVault } from './agents/agent-vault.ts';
import { defaultModelsOf } from './agents/default-models.ts';
import { AuditTrail } from './audit/audit-trail.ts';
import { AccountTokens } from './auth/account-tokens.ts';
import { createAuthenticators } from './auth/authenticators.ts';
import { SigningKeys } from './auth/signing-keys.ts';
import { createWorkerAuthenticator } from './auth/worker-authenticator.ts';
import { Catalogue, readCatalogue } from './catalogue/catalogue.ts';
import { ApiKeys } from './keys/api-keys.ts';
import { limitRate } from './rate-limits/rate-limiter.ts';
import { Reconciler } from './reconcile/reconciler.ts';
import { SandboxDeleter } from './sandboxes/delete.ts';
import { createSandboxes } from './sandboxes/sandboxes.ts';
import { SandboxStarter } from './sandboxes/start.ts';
import { openMasterKeys } from './secrets/open-master-keys.ts';
import { SecretBundles } from './secrets/secret-bundles.ts';
import type { Services } from './services.ts';
import { SessionAccessIssuer } from './sessions/access.ts';
import { ConfigUpdates } from './sessions/config-updates.ts';
import { createSessions } from './sessions/sessions.ts';
import type { Mailer } from './tenants/mail.ts';
import { OneTimeCodes } from './tenants/one-time-codes.ts';
import { Tenants } from './tenants/tenants.ts';
import type { WorkerConnections } from './workers/connections.ts';
import { Fleet } from './workers/fleet.ts';
import { WorkerClient } from './workers/worker-client.ts';

/** Resources that the services are built from. */
export interface Parts {
  readonly config: Config;
  readonly clusterSecret: Secret;
  readonly logger: FastifyBaseLogger;
  readonly store: Store;
  readonly connections: WorkerConnections;
  readonly mailer: Mailer;
  readonly registry: Registry;
  /** Public URL of the runtime host. */
  readonly runtimeUrl: () => string;
}

/** Builds the services. */
export async function createServices(parts: Parts): Promise<Services> {
  const { config, clusterSecret, logger, store } = parts;
  const sealingKey = deriveKey(clusterSecret, 'svc account signing keys v1');
  const tokens = new AccountTokens(new SigningKeys(store.signingKeys, sealingKey));
  const audit = new AuditTrail(store.audit, logger);
  const apiKeys = new ApiKeys(store, audit);
  const mint = createTokenMinter(clusterSecret, CONTROL_PLANE_NAME);
  const { connections } = parts;
  const client = new WorkerClient({ connections, mintToken: mint, logger });
  const fleet = new Fleet((workerId) => store.workers.find(workerId), client);
  const codes = new OneTimeCodes({
    otp: store.otp,
    mailer: parts.mailer,
    logger,
    hashKey: deriveKey(clusterSecret, 'svc one-time codes v1'),
    limits: config.limits,
  });
  const keyring = await openMasterKeys(config, store.masterKeys);
  const egress = new EgressPolicy(config.egressAllowHosts);
  const models = defaultModelsOf(config);
  const catalogue = new Catalogue(await readCatalogue(), audit);
  const secretBundles = new SecretBundles({ store, keyring, egress, audit });
  const vault = new AgentVault({ store, keyring, bundles: secretBundles });
  const starter = new SandboxStarter(store, fleet, vault);
  const deleter = new SandboxDeleter(store, fleet);
  return {
    auth: createAuthenticators(store, tokens),
    workerAuth: createWorkerAuthenticator(createTokenVerifier(clusterSecret, CONTROL_PLANE_NAME)),
    tenants: new Tenants({ tenants: store.tenants, codes, tokens, keys: apiKeys, audit }),
    apiKeys,
    audit,
    catalogue,
    secretBundles,
    sandboxes: createSandboxes({
      store,
      fleet,
      starter,
      deleter,
      rules: { addresses: egress, models },
    }),
    sessions: createSessions({
      store,
      starter,
      deleter,
      secretBundles,
      catalogue,
      addresses: egress,
      models,
      access: new SessionAccessIssuer(
        new SessionTokens(clusterSecret, 'runtime'),
        parts.runtimeUrl,
      ),
      audit,
      configUpdates: new ConfigUpdates({ store, vault, fleet, logger }),
    }),
    agentVault: vault,
    reconciler: new Reconciler(store, logger),
    limits: {
      catalogueRate: limitRate(store.requestBudgets, {
        name: 'templates',
        most: config.limits.templatesPerMinute,
        windowSeconds: 60,
      }),
      uploadBytes: config.limits.uploadBytes,
    },
    monitoring: {
      ready: () => store.ping(),
      metrics: () => parts.registry.metrics(),
    },
  };
}

/** Derives a key for one purpose. Every replica derives the same key. */
function deriveKey(secret: Secret, purpose: string): Buffer {
  return Buffer.from(hkdfSync('sha256', secret.reveal(), '', purpose, 32));
}
