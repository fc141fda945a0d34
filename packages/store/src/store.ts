import { LIMITS } from '@svc/contract';
import { sql } from 'kysely';
import { connect, connectForLookups, connectForRequests } from './connect.ts';
import { contractSchema, requireCompatible } from './contraction.ts';
import { migrate } from './migrate.ts';
import { MIGRATIONS } from './migrations/index.ts';
import {
  CONTRACTION_DEADLINES,
  MIGRATION_DEADLINES,
  type PoolListener,
  REQUEST_DEADLINES,
} from './pool.ts';
import { AgentLogRepository } from './repositories/agent-logs/agent-log-repository.ts';
import { AgentSecretsRepository } from './repositories/agent-secrets.ts';
import { ApiKeyRepository } from './repositories/api-keys.ts';
import { ArchiveRepository } from './repositories/archive.ts';
import { AuditRepository } from './repositories/audit.ts';
import { BillingRepository } from './repositories/billing/billing-repository.ts';
import {
  ChunkRepository,
  SESSION_CHUNKS,
  TRANSCRIPT_CHUNKS,
  WORKSPACE_CHUNKS,
} from './repositories/chunks/chunk-repository.ts';
import { ComponentRepository } from './repositories/components.ts';
import { ConfigUpdateRepository } from './repositories/config-updates.ts';
import { ControlPlaneRepository } from './repositories/control-planes.ts';
import { IdempotencyRepository } from './repositories/idempotency.ts';
import { ImageRepository } from './repositories/images.ts';
import { MasterKeyRepository } from './repositories/master-keys.ts';
import { ObjectDeletionRepository } from './repositories/object-deletions.ts';
import { OtpRepository } from './repositories/otp.ts';
import { QuarantineRepository } from './repositories/quarantine/quarantine-repository.ts';
import { RequestBudgetRepository } from './repositories/request-budgets.ts';
import { RuntimeHostRepository } from './repositories/runtime-hosts.ts';
import type { PlacementRules } from './repositories/sandboxes/choose-worker.ts';
import { SandboxRepository } from './repositories/sandboxes/sandbox-repository.ts';
import { SecretBundleRepository } from './repositories/secret-bundles.ts';
import { SessionFilesRepository } from './repositories/sessions/files.ts';
import { SessionHistoryRepository } from './repositories/sessions/history.ts';
import { SessionRepository } from './repositories/sessions/session-repository.ts';
import { SigningKeyRepository } from './repositories/signing-keys.ts';
import { TenantKeyRepository } from './repositories/tenant-keys.ts';
import { TenantRepository } from './repositories/tenants.ts';
import { UsageRepository } from './repositories/usage/usage-repository.ts';
import { WorkerRepository } from './repositories/workers.ts';
import { WorkspaceRepository } from './repositories/workspaces/workspace-repository.ts';

export interface StoreOptions extends PoolListener {
  /** Connection string of a PostgreSQL database. */
  readonly url: string;
  readonly placement: PlacementRules;
  /** What the sessions of a tenant may keep, in bytes; default: any number. */
  readonly sessionBytesPerTenant?: number;
  /** What the workspaces of a tenant may have, in bytes; default: any number. */
  readonly workspaceBytesPerTenant?: number;
  /** How many workspaces a tenant may have; default: any number. */
  readonly workspacesPerTenant?: number;
}

/** The ledger, with one repository per aggregate. */
export interface Store {
  readonly tenants: TenantRepository;
  readonly otp: OtpRepository;
  readonly apiKeys: ApiKeyRepository;
  readonly sandboxes: SandboxRepository;
  readonly workers: WorkerRepository;
  readonly quarantine: QuarantineRepository;
  readonly controlPlanes: ControlPlaneRepository;
  readonly runtimeHosts: RuntimeHostRepository;
  readonly components: ComponentRepository;
  readonly idempotency: IdempotencyRepository;
  readonly audit: AuditRepository;
  readonly signingKeys: SigningKeyRepository;
  readonly masterKeys: MasterKeyRepository;
  readonly secretBundles: SecretBundleRepository;
  readonly requestBudgets: RequestBudgetRepository;
  readonly agentSecrets: AgentSecretsRepository;
  readonly agentLogs: AgentLogRepository;
  readonly configUpdates: ConfigUpdateRepository;
  readonly sessions: SessionRepository;
  readonly sessionHistory: SessionHistoryRepository;
  readonly sessionFiles: SessionFilesRepository;
  readonly billing: BillingRepository;
  readonly usage: UsageRepository;
  readonly sessionChunks: ChunkRepository;
  readonly transcriptChunks: ChunkRepository;
  readonly workspaceChunks: ChunkRepository;
  readonly tenantKeys: TenantKeyRepository;
  readonly objectDeletions: ObjectDeletionRepository;
  readonly images: ImageRepository;
  readonly archive: ArchiveRepository;
  readonly workspaces: WorkspaceRepository;
  /**
   * Takes out of the schema what no control plane that is alive needs. Returns the migrations that still wait for one.
   */
  contract(): Promise<readonly string[]>;
  /** Settles when the database answers. @throws ServiceError `database_unavailable` */
  ping(): Promise<void>;
  /** Closes every connection. */
  close(): Promise<void>;
}

/**
 * Opens the ledger and expands its schema to the newest version.
 * @throws ServiceError `database_unavailable`; IncompatibleSchemaError when this version is too old for the schema
 */
export async function openStore(options: StoreOptions): Promise<Store> {
  await migrateDatabase(options.url);
  const { db, prepared } = connectForRequests(options.url, REQUEST_DEADLINES, options);
  const lookups = connectForLookups(options.url, REQUEST_DEADLINES, options);
  return {
    tenants: new TenantRepository(db),
    otp: new OtpRepository(db),
    apiKeys: new ApiKeyRepository(db, lookups),
    sandboxes: new SandboxRepository(prepared, lookups, options.placement),
    workers: new WorkerRepository(prepared, lookups),
    quarantine: new QuarantineRepository(db),
    controlPlanes: new ControlPlaneRepository(db),
    runtimeHosts: new RuntimeHostRepository(db),
    components: new ComponentRepository(db, lookups),
    idempotency: new IdempotencyRepository(db),
    audit: new AuditRepository(db),
    signingKeys: new SigningKeyRepository(lookups),
    masterKeys: new MasterKeyRepository(db),
    secretBundles: new SecretBundleRepository(db),
    requestBudgets: new RequestBudgetRepository(db),
    agentSecrets: new AgentSecretsRepository(db),
    agentLogs: new AgentLogRepository(db),
    configUpdates: new ConfigUpdateRepository(db),
    sessions: new SessionRepository(db),
    sessionHistory: new SessionHistoryRepository(
      db,
      LIMITS.sessionHistoryBytes,
      options.sessionBytesPerTenant,
    ),
    sessionFiles: new SessionFilesRepository(db),
    billing: new BillingRepository(db),
    workspaces: new WorkspaceRepository(db, options.workspacesPerTenant),
    usage: new UsageRepository(db),
    sessionChunks: new ChunkRepository(
      db,
      SESSION_CHUNKS,
      unusedBytesOf(options.sessionBytesPerTenant),
      LIMITS.sessionFilesBytes,
    ),
    transcriptChunks: new ChunkRepository(
      db,
      TRANSCRIPT_CHUNKS,
      unusedBytesOf(options.sessionBytesPerTenant),
      LIMITS.sessionFilesBytes,
    ),
    workspaceChunks: new ChunkRepository(
      db,
      WORKSPACE_CHUNKS,
      unusedBytesOf(options.workspaceBytesPerTenant),
      LIMITS.sessionFilesBytes,
    ),
    tenantKeys: new TenantKeyRepository(db),
    objectDeletions: new ObjectDeletionRepository(db),
    images: new ImageRepository(db),
    archive: new ArchiveRepository(db),
    contract: () => contractDatabase(options.url),
    ping: async () => {
      await sql`select 1`.execute(db);
    },
    close: async () => {
      await Promise.all([db.destroy(), lookups.destroy()]);
    },
  };
}

/** What unused chunks may have beside a quota: as much again, and enough to replace the files of any one session. */
function unusedBytesOf(quota = Number.POSITIVE_INFINITY): number {
  return Math.max(quota, LIMITS.sessionFilesBytes);
}

async function migrateDatabase(url: string): Promise<void> {
  const db = connect(url, MIGRATION_DEADLINES);
  try {
    await migrate(db);
    await db.transaction().execute((trx) => requireCompatible(trx, Object.keys(MIGRATIONS)));
  } finally {
    await db.destroy();
  }
}

async function contractDatabase(url: string): Promise<readonly string[]> {
  if (Object.values(MIGRATIONS).every(({ contraction }) => contraction === undefined)) return [];
  const db = connect(url, CONTRACTION_DEADLINES);
  try {
    return await contractSchema(db);
  } finally {
    await db.destroy();
  }
}
