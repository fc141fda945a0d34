import { LIMITS } from '@svc/contract';
import { Kysely, PostgresDialect, sql } from 'kysely';
import { migrate } from './migrate.ts';
import { type Deadlines, MIGRATION_DEADLINES, openPool, REQUEST_DEADLINES } from './pool.ts';
import { AgentSecretsRepository } from './repositories/agent-secrets.ts';
import { ApiKeyRepository } from './repositories/api-keys.ts';
import { AuditRepository } from './repositories/audit.ts';
import { IdempotencyRepository } from './repositories/idempotency.ts';
import { MasterKeyRepository } from './repositories/master-keys.ts';
import { OtpRepository } from './repositories/otp.ts';
import { RequestBudgetRepository } from './repositories/request-budgets.ts';
import type { PlacementRules } from './repositories/sandboxes/choose-worker.ts';
import { SandboxRepository } from './repositories/sandboxes/sandbox-repository.ts';
import { SecretBundleRepository } from './repositories/secret-bundles.ts';
import { SessionFilesRepository } from './repositories/sessions/files.ts';
import { SessionHistoryRepository } from './repositories/sessions/history.ts';
import { SessionRepository } from './repositories/sessions/session-repository.ts';
import { SigningKeyRepository } from './repositories/signing-keys.ts';
import { TenantRepository } from './repositories/tenants.ts';
import { WorkerRepository } from './repositories/workers.ts';
import type { Schema } from './schema.ts';

export interface StoreOptions {
  /** Connection string of a PostgreSQL database. */
  readonly url: string;
  readonly placement: PlacementRules;
  /** Called when an idle connection breaks. */
  readonly onConnectionLost?: (error: Error) => void;
}

/** The ledger, with one repository per aggregate. */
export interface Store {
  readonly tenants: TenantRepository;
  readonly otp: OtpRepository;
  readonly apiKeys: ApiKeyRepository;
  readonly sandboxes: SandboxRepository;
  readonly workers: WorkerRepository;
  readonly idempotency: IdempotencyRepository;
  readonly audit: AuditRepository;
  readonly signingKeys: SigningKeyRepository;
  readonly masterKeys: MasterKeyRepository;
  readonly secretBundles: SecretBundleRepository;
  readonly requestBudgets: RequestBudgetRepository;
  readonly agentSecrets: AgentSecretsRepository;
  readonly sessions: SessionRepository;
  readonly sessionHistory: SessionHistoryRepository;
  readonly sessionFiles: SessionFilesRepository;
  /** Settles when the database answers. @throws ServiceError `database_unavailable` */
  ping(): Promise<void>;
  /** Closes every connection. */
  close(): Promise<void>;
}

/**
 * Opens the ledger and migrates it to the newest version.
 * @throws ServiceError `database_unavailable`
 */
export async function openStore(options: StoreOptions): Promise<Store> {
  await migrateDatabase(options.url);
  const db = connect(options.url, REQUEST_DEADLINES, options.onConnectionLost);
  return {
    tenants: new TenantRepository(db),
    otp: new OtpRepository(db),
    apiKeys: new ApiKeyRepository(db),
    sandboxes: new SandboxRepository(db, options.placement),
    workers: new WorkerRepository(db),
    idempotency: new IdempotencyRepository(db),
    audit: new AuditRepository(db),
    signingKeys: new SigningKeyRepository(db),
    masterKeys: new MasterKeyRepository(db),
    secretBundles: new SecretBundleRepository(db),
    requestBudgets: new RequestBudgetRepository(db),
    agentSecrets: new AgentSecretsRepository(db),
    sessions: new SessionRepository(db),
    sessionHistory: new SessionHistoryRepository(db, LIMITS.sessionHistoryBytes),
    sessionFiles: new SessionFilesRepository(db),
    ping: async () => {
      await sql`select 1`.execute(db);
    },
    close: () => db.destroy(),
  };
}

async function migrateDatabase(url: string): Promise<void> {
  const db = connect(url, MIGRATION_DEADLINES);
  try {
    await migrate(db);
  } finally {
    await db.destroy();
  }
}

function connect(
  url: string,
  deadlines: Deadlines,
  onConnectionLost: (error: Error) => void = () => undefined,
): Kysely<Schema> {
  const pool = openPool(url, deadlines, onConnectionLost);
  return new Kysely<Schema>({ dialect: new PostgresDialect({ pool }) });
}
