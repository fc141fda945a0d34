/**
 * The ledger: PostgreSQL, embedded or by URL, its migrations, and one repository for each aggregate.
 */

export { type AdjustmentOutcome, adjustBilling } from './adjust-billing.ts';
export { IncompatibleSchemaError } from './contraction.ts';
export { type BackupOptions, backUp } from './embedded/backup/back-up.ts';
export { type BaseBackup, listBaseBackups } from './embedded/backup/base-backups.ts';
export { type Restored, type RestoreOptions, restore } from './embedded/backup/restore.ts';
export { UnfinishedRestoreError } from './embedded/backup/unfinished-restore.ts';
export {
  EmbeddedPostgres,
  type EmbeddedPostgresEvent,
  type EmbeddedPostgresOptions,
} from './embedded/embedded-postgres.ts';
export { type OpenFleet, openFleet } from './open-fleet.ts';
export { type OpenImages, openImages } from './open-images.ts';
export type { LogExtent, StoredLog } from './repositories/agent-logs/agent-log-repository.ts';
export type { NewAgentSecrets } from './repositories/agent-secrets.ts';
export type { ApiKeyOwner } from './repositories/api-keys.ts';
export type { AuditPage, AuditRecord } from './repositories/audit.ts';
export type { AutoTopup } from './repositories/billing/accounts.ts';
export type { CreditNotice } from './repositories/billing/credit-notices.ts';
export type { Transaction } from './repositories/billing/entries.ts';
export type { PaymentFact, ProviderEvent } from './repositories/billing/provider-events.ts';
export type { ClaimedTopup } from './repositories/billing/topups.ts';
export type { BillingCheck, BillingDifference } from './repositories/billing/verify.ts';
export {
  type AnnouncedChunk,
  type ChunkRepository,
  type KeyRange,
  type StoredChunk,
  TooManyUnusedChunks,
} from './repositories/chunks/chunk-repository.ts';
export type {
  ComponentKey,
  ComponentRepository,
  ListedComponent,
} from './repositories/components.ts';
export type { ConfigUpdateRow } from './repositories/config-updates.ts';
export type { FleetRepository, FleetWorker, WorkerStanding } from './repositories/fleet.ts';
export type { IdempotencyClaim, IdempotencyHold } from './repositories/idempotency.ts';
export type {
  ImageBlob,
  ImageName,
  ImageRepository,
  ListedImage,
  NewImage,
  StoredImage,
} from './repositories/images.ts';
export type { ObjectDeletionRepository } from './repositories/object-deletions.ts';
export type { OtpRequest } from './repositories/otp.ts';
export type { Judgement } from './repositories/quarantine/judge.ts';
export type {
  QuarantinedSandbox,
  QuarantineRepository,
} from './repositories/quarantine/quarantine-repository.ts';
export type { ReleaseRefusal } from './repositories/quarantine/release.ts';
export type { BudgetRequest, BudgetState } from './repositories/request-budgets.ts';
export type { PlacementRefusal, PlacementRules } from './repositories/sandboxes/choose-worker.ts';
export type { Ending } from './repositories/sandboxes/ending.ts';
export type { LedgerEntry, SeenSandbox } from './repositories/sandboxes/lookup.ts';
export type { PlacedRow, Placement, PlacementRequest } from './repositories/sandboxes/placement.ts';
export type { NewBundle, SealedBundle, WrappedKeyRow } from './repositories/secret-bundles.ts';
export type { ServerState } from './repositories/server-state.ts';
export { type Content, isStored, type StoredContent } from './repositories/sessions/content.ts';
export {
  newestFrames,
  type StoredState,
  type Turn,
  type TurnOutcome,
} from './repositories/sessions/history.ts';
export type { SessionLease } from './repositories/sessions/lease.ts';
export type {
  HeldSession,
  RoutedSession,
  SeenSession,
  SessionModel,
} from './repositories/sessions/lookup.ts';
export type { Manifest } from './repositories/sessions/manifests.ts';
export type { ReservedNumbers } from './repositories/sessions/numbering.ts';
export type { NewSession, SessionRefusal } from './repositories/sessions/session-repository.ts';
export type { FrameRow, InlineTranscript } from './repositories/sessions/transcripts.ts';
export type { AgedSigningKey } from './repositories/signing-keys.ts';
export type { SampleVerdict } from './repositories/usage/ingest.ts';
export type { PriceTable } from './repositories/usage/price.ts';
export type {
  DayRange,
  MeteredRow,
  UsageDay,
  UsageTotals,
} from './repositories/usage/reading.ts';
export type { Commit, CommitLimits } from './repositories/workspaces/commit.ts';
export type { MountedWorkspace } from './repositories/workspaces/mount.ts';
export type {
  Extent,
  Workspace,
  WorkspaceChange,
  WorkspaceContent,
  WorkspaceEntry,
  WorkspaceFile,
  WorkspaceQuota,
  WorkspaceScope,
} from './repositories/workspaces/scope.ts';
export type { Flush, FlushLimits, StageOutcome } from './repositories/workspaces/stage.ts';
export type {
  AgentSecretsRow,
  ApiKeyRow,
  AuditRow,
  IdempotentResponse,
  SandboxRow,
  SecretBundleRow,
  SessionRow,
  TenantKeyRow,
  TenantRow,
  WorkerRow,
} from './schema.ts';
export { onBehalfOf, type StatementOwner } from './statement-owner.ts';
export { openStore, type Store, type StoreOptions } from './store.ts';
export { verifyBilling } from './verify-billing.ts';
