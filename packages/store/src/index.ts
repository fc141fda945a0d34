/**
 * The ledger: PostgreSQL, embedded or by URL, its migrations, and one repository for each aggregate.
 */
export {
  EmbeddedPostgres,
  type EmbeddedPostgresEvent,
  type EmbeddedPostgresOptions,
} from './embedded/embedded-postgres.ts';
export type { NewAgentSecrets } from './repositories/agent-secrets.ts';
export type { ApiKeyOwner } from './repositories/api-keys.ts';
export type { AuditPage, AuditRecord } from './repositories/audit.ts';
export type { IdempotencyClaim, IdempotencyId } from './repositories/idempotency.ts';
export type { OtpRequest } from './repositories/otp.ts';
export type { BudgetRequest, BudgetState } from './repositories/request-budgets.ts';
export type { PlacementRefusal, PlacementRules } from './repositories/sandboxes/choose-worker.ts';
export type { Ending } from './repositories/sandboxes/ending.ts';
export type { LedgerEntry } from './repositories/sandboxes/lookup.ts';
export type { PlacedRow, Placement, PlacementRequest } from './repositories/sandboxes/placement.ts';
export type { NewBundle, SealedBundle, WrappedKeyRow } from './repositories/secret-bundles.ts';
export { PIECE_BYTES } from './repositories/sessions/files.ts';
export type { StoredState, Turn, TurnOutcome } from './repositories/sessions/history.ts';
export type { SessionLease } from './repositories/sessions/lease.ts';
export type { HeldSession, RoutedSession, SessionUse } from './repositories/sessions/lookup.ts';
export type { NewSession } from './repositories/sessions/session-repository.ts';
export type {
  AgentSecretsRow,
  ApiKeyRow,
  AuditRow,
  IdempotentResponse,
  SandboxRow,
  SecretBundleRow,
  SessionRow,
  SigningKeyRow,
  TenantRow,
  WorkerRow,
} from './schema.ts';
export { openStore, type Store, type StoreOptions } from './store.ts';
