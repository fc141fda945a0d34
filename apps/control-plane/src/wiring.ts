import type { Config } from '@svc/config';
import { CONTROL_PLANE_NAME, LIMITS } from '@svc/contract';
import { EgressPolicy } from '@svc/egress';
import { SignedUrls } from '@svc/object-store';
import {
  createTokenMinter,
  mintHopToken,
  type Registry,
  SessionTokens,
  sessionTokenKey,
} from '@svc/service-kit';
import { FairStarts } from '@svc/service-kit/concurrency';
import type { PriceTable, Store } from '@svc/store';
import type { FastifyBaseLogger } from 'fastify';
import { AgentVault } from './agents/agent-vault.ts';
import { defaultModelsOf } from './agents/default-models.ts';
import { AuditTrail } from './audit/audit-trail.ts';
import { AccountTokens } from './auth/account-tokens.ts';
import { createAuthenticators } from './auth/authenticators.ts';
import { createComponentAuthenticator } from './auth/component-authenticator.ts';
import { Enrolments } from './auth/enrolments.ts';
import { SigningKeys } from './auth/signing-keys.ts';
import { TenantRequests } from './auth/tenant-requests.ts';
import { Billing } from './billing/billing.ts';
import { creditGate } from './billing/credit-gate.ts';
import { createPayments } from './billing/wiring.ts';
import { AgentBuilds } from './catalogue/agent-builds.ts';
import { Catalogue, readCatalogue } from './catalogue/catalogue.ts';
import type { ClusterSecrets } from './crypto/cluster-secrets.ts';
import { StoredImages } from './images/stored-images.ts';
import { ApiKeys } from './keys/api-keys.ts';
import type { Objects } from './objects/open-objects.ts';
import { LinkTokens } from './ports/link-tokens.ts';
import { PortLinks } from './ports/links.ts';
import { Ports } from './ports/ports.ts';
import type { Presence } from './presence.ts';
import { limitRate } from './rate-limits/rate-limiter.ts';
import type { LostWorkers } from './reconcile/lost-workers.ts';
import { Reconciler } from './reconcile/reconciler.ts';
import { SandboxDeleter } from './sandboxes/delete.ts';
import { createSandboxes } from './sandboxes/sandboxes.ts';
import { SandboxStarter } from './sandboxes/start.ts';
import { TenantOperations } from './sandboxes/tenant-operations.ts';
import { openMasterKeys } from './secrets/open-master-keys.ts';
import { SecretBundles } from './secrets/secret-bundles.ts';
import { TenantKeys } from './secrets/tenant-keys.ts';
import type { Services } from './services.ts';
import { SessionAccessIssuer } from './sessions/access.ts';
import { ConfigUpdates } from './sessions/config-updates.ts';
import { createSessions } from './sessions/sessions.ts';
import type { Mailer } from './tenants/mail.ts';
import { OneTimeCodes } from './tenants/one-time-codes.ts';
import { Tenants } from './tenants/tenants.ts';
import { UsageReports } from './usage/report-usage.ts';
import { Usage } from './usage/usage.ts';
import type { WorkerConnections } from './workers/connections.ts';
import { Fleet } from './workers/fleet.ts';
import { WorkerClient } from './workers/worker-client.ts';
import { ChunkedContents } from './workspaces/chunked-content.ts';
import { MountedWorkspaces } from './workspaces/mounted/mounted-workspaces.ts';
import { createWorkspaceChunks } from './workspaces/mounted/workspace-chunks.ts';
import { uploadBytesOf } from './workspaces/upload-bytes.ts';
import { UploadTaker } from './workspaces/upload-taker.ts';
import { WORKSPACE_FILES_PATH, Workspaces } from './workspaces/workspaces.ts';

/** Purchases that one account may begin. */
const CHECKOUTS_PER_HOUR = 60;

/** Resources that the services are built from. */
export interface Parts {
  readonly config: Config;
  readonly clusterSecrets: ClusterSecrets;
  readonly logger: FastifyBaseLogger;
  readonly store: Store;
  readonly lostWorkers: LostWorkers;
  readonly connections: WorkerConnections;
  readonly mailer: Mailer;
  readonly objects: Objects;
  readonly presence: Pick<Presence, 'check'>;
  readonly registry: Registry;
  /** Public URL of the runtime host. */
  readonly runtimeUrl: () => string;
  /** Public URL of this control plane, read for each purchase. */
  readonly baseUrl: () => string;
}

/** Builds the services. */
export async function createServices(parts: Parts): Promise<Services> {
  const { config, clusterSecrets, logger, store } = parts;
  const sealingKeys = clusterSecrets.keysFor('svc account signing keys v1');
  const tokens = new AccountTokens(new SigningKeys(store.signingKeys, sealingKeys));
  const audit = new AuditTrail(store.audit, logger);
  const apiKeys = new ApiKeys(store, audit, config.limits.apiKeysPerTenant);
  const keys = clusterSecrets.keyPairs;
  const mint = createTokenMinter(() => keys[0], CONTROL_PLANE_NAME);
  const { connections } = parts;
  const client = new WorkerClient({ connections, mintToken: mint, logger });
  const fleet = new Fleet((workerId) => store.workers.find(workerId), client);
  const codes = new OneTimeCodes({
    otp: store.otp,
    mailer: parts.mailer,
    logger,
    hashKeys: clusterSecrets.keysFor('svc one-time codes v1'),
    limits: config.limits,
  });
  const keyring = await openMasterKeys(config, store.masterKeys);
  const egress = new EgressPolicy(config.egressAllowHosts);
  const models = defaultModelsOf(config);
  const builds = new AgentBuilds(store);
  const catalogue = new Catalogue(await readCatalogue(), builds, audit);
  const secretBundles = new SecretBundles({ store, keyring, egress, audit });
  const vault = new AgentVault({ store, keyring, bundles: secretBundles, models });
  const credit = creditGate(store.billing, config.billingEnforce);
  const starter = new SandboxStarter({ store, fleet, vault, credit });
  const deleter = new SandboxDeleter(store, fleet);
  const { payments, upkeep } = createPayments({
    config,
    store,
    fleet,
    logger,
    baseUrl: parts.baseUrl,
    formKeys: clusterSecrets.keysFor('svc checkout forms v1'),
  });
  const sessionTokens = new SessionTokens(clusterSecrets.derive(sessionTokenKey));
  const access = new SessionAccessIssuer(sessionTokens, parts.runtimeUrl);
  const quota = {
    tenantBytes: config.limits.workspaceBytes,
    tenantEntries: config.limits.workspaceEntries,
    entries: LIMITS.workspaceEntries,
  };
  const uploadBytes = uploadBytesOf(config.limits);
  const taker = new UploadTaker({
    store,
    objects: parts.objects.store,
    logger,
    quota,
    limits: uploadBytes,
  });
  const tenantKeys = new TenantKeys(store, keyring);
  const workspaceChunks = createWorkspaceChunks({
    store,
    objects: parts.objects,
    keys: tenantKeys,
  });
  const auth = createAuthenticators(
    store,
    tokens,
    new TenantRequests(config.limits.requestsPerTenant),
    new FairStarts(),
  );
  const sandboxes = createSandboxes({
    store,
    fleet,
    starter,
    deleter,
    rules: { addresses: egress, models },
    access,
    operations: new TenantOperations(config.limits.operationsPerTenant),
    calls: new TenantOperations(config.limits.callsPerTenant),
    mostPerTenant: config.limits.sandboxesPerTenant,
  });
  const { baseUrl } = parts;
  return {
    auth,
    componentAuth: createComponentAuthenticator(store.components),
    enrolments: new Enrolments(store.components, keys, logger),
    tenants: new Tenants({
      tenants: store.tenants,
      grantCents: config.signupGrantCents,
      codes,
      tokens,
      keys: apiKeys,
      audit,
    }),
    apiKeys,
    audit,
    billing: new Billing(store.billing),
    payments,
    billingUpkeep: upkeep,
    catalogue,
    secretBundles,
    objects: parts.objects,
    sandboxes,
    ports: new Ports({
      links: new PortLinks({
        store,
        tokens: new LinkTokens(clusterSecrets.keysFor('svc port links v1')),
        audit,
        apiKey: auth.apiKeyUncounted,
        baseUrl,
      }),
      operations: sandboxes.operations,
      mostPerTenant: config.limits.portConnectionsPerTenant,
      baseUrl,
    }),
    sessions: createSessions({
      store,
      starter,
      deleter,
      secretBundles,
      catalogue,
      builds,
      addresses: egress,
      models,
      access,
      tokens: sessionTokens,
      mintHopToken: (identity, workerId) => mintHopToken(keys[0], identity, workerId),
      audit,
      credit,
      lostWorkers: parts.lostWorkers,
      configUpdates: new ConfigUpdates({ store, fleet, logger }),
      sessionsPerTenant: config.limits.sessionsPerTenant,
      objects: parts.objects,
      tenantKeys,
      logger,
    }),
    workspaces: new Workspaces({
      store,
      objects: parts.objects.store,
      taker,
      contents: new ChunkedContents({
        store,
        objects: parts.objects.store,
        secretOf: (owner) => workspaceChunks.secretOf(owner),
      }),
      urls: new SignedUrls(
        clusterSecrets.keysFor('svc workspace URLs v1'),
        baseUrl,
        WORKSPACE_FILES_PATH,
      ),
      quota,
      limits: uploadBytes,
    }),
    mountedWorkspaces: new MountedWorkspaces({
      store,
      objects: parts.objects,
      taker,
      quota,
      chunks: workspaceChunks,
    }),
    storedImages: new StoredImages({ images: store.images, objects: parts.objects }),
    agentVault: vault,
    usage: new Usage(store),
    usageReports: new UsageReports(store.usage, pricesOf(config), logger),
    reconciler: new Reconciler(store, logger),
    runtimeHosts: store.runtimeHosts,
    limits: {
      catalogueRate: limitRate(store.requestBudgets, {
        name: 'templates',
        most: config.limits.templatesPerMinute,
        windowSeconds: 60,
      }),
      checkoutRate: limitRate(store.requestBudgets, {
        name: 'checkouts',
        most: CHECKOUTS_PER_HOUR,
        windowSeconds: 3600,
      }),
      uploadBytes: config.limits.uploadBytes,
    },
    monitoring: {
      ready: async () => {
        parts.presence.check();
        await store.ping();
      },
      metrics: () => parts.registry.metrics(),
    },
  };
}

function pricesOf({ priceCpuSecond, priceGibSecond, priceToolCall }: Config): PriceTable {
  return { cpuSecond: priceCpuSecond, gibSecond: priceGibSecond, toolCall: priceToolCall };
}
