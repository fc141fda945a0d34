import { Kysely, PostgresDialect, sql } from 'kysely';
import { migrate } from './migrate.ts';
import { openPool } from './pool.ts';
import { ApiKeyRepository } from './repositories/api-keys.ts';
import { AuditRepository } from './repositories/audit.ts';
import { IdempotencyRepository } from './repositories/idempotency.ts';
import { OtpRepository } from './repositories/otp.ts';
import { type PlacementRules, SandboxRepository } from './repositories/sandboxes/index.ts';
import { TenantRepository } from './repositories/tenants.ts';
import { WorkerRepository } from './repositories/workers.ts';
import type { Schema } from './schema.ts';

/** How to open the ledger. */
export interface StoreOptions {
  /** Connection string of a PostgreSQL database. */
  readonly url: string;
  readonly placement: PlacementRules;
  /** Told when a connection breaks that nobody is using. */
  readonly onConnectionLost?: (error: Error) => void;
}

/** The ledger: one repository for each aggregate. */
export interface Store {
  readonly tenants: TenantRepository;
  readonly otp: OtpRepository;
  readonly apiKeys: ApiKeyRepository;
  readonly sandboxes: SandboxRepository;
  readonly workers: WorkerRepository;
  readonly idempotency: IdempotencyRepository;
  readonly audit: AuditRepository;
  /** Settles when the database answers. @throws ServiceError `database_unavailable` */
  ping(): Promise<void>;
  /** Closes every connection. */
  close(): Promise<void>;
}

/** Opens the ledger and migrates it to the newest version. */
export async function openStore(options: StoreOptions): Promise<Store> {
  const pool = openPool(options.url, options.onConnectionLost ?? (() => undefined));
  const db = new Kysely<Schema>({ dialect: new PostgresDialect({ pool }) });
  try {
    await migrate(db);
  } catch (error) {
    await db.destroy();
    throw error;
  }
  return {
    tenants: new TenantRepository(db),
    otp: new OtpRepository(db),
    apiKeys: new ApiKeyRepository(db),
    sandboxes: new SandboxRepository(db, options.placement),
    workers: new WorkerRepository(db),
    idempotency: new IdempotencyRepository(db),
    audit: new AuditRepository(db),
    ping: async () => {
      await sql`select 1`.execute(db);
    },
    close: () => db.destroy(),
  };
}
