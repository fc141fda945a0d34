/**
 * The ledger: PostgreSQL, embedded or by URL, its migrations, and one repository for each aggregate.
 */
export {
  EmbeddedPostgres,
  type EmbeddedPostgresEvent,
  type EmbeddedPostgresOptions,
} from './embedded/embedded-postgres.ts';
export type { ApiKeyOwner } from './repositories/api-keys.ts';
export type { AuditRecord } from './repositories/audit.ts';
export type { IdempotencyClaim, IdempotencyId } from './repositories/idempotency.ts';
export type { OtpRequest } from './repositories/otp.ts';
export type {
  Ending,
  LedgerEntry,
  Placement,
  PlacementRefusal,
  PlacementRequest,
  PlacementRules,
} from './repositories/sandboxes/index.ts';
export type { IdempotentResponse, SandboxRow, TenantRow, WorkerRow } from './schema.ts';
export { openStore, type Store, type StoreOptions } from './store.ts';
