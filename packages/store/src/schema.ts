import type {
  Agent,
  AppJson,
  AuditEvent,
  ComponentKind,
  EndReason,
  LlmVendor,
  SandboxPlacement,
  SandboxSize,
  SandboxState,
  SessionStatus,
  WorkerSandbox,
  WorkerTemplate,
} from '@svc/contract';
import type { ColumnType, Generated, Insertable, JSONColumnType, Selectable } from 'kysely';

/** The tables of the ledger, as the migrations make them. */
export interface Schema {
  readonly tenants: TenantsTable;
  readonly api_keys: ApiKeysTable;
  readonly otp_codes: OtpCodesTable;
  readonly otp_requests: OtpRequestsTable;
  readonly workers: WorkersTable;
  readonly control_planes: ControlPlanesTable;
  readonly runtime_hosts: RuntimeHostsTable;
  readonly components: ComponentsTable;
  readonly enrolment_tokens: EnrolmentTokensTable;
  readonly schema_contractions: SchemaContractionsTable;
  readonly sandboxes: SandboxesTable;
  readonly quarantined_sandboxes: QuarantinedSandboxesTable;
  readonly forgotten_sandboxes: ForgottenSandboxesTable;
  readonly idempotency_keys: IdempotencyKeysTable;
  readonly audit_records: AuditRecordsTable;
  readonly signing_keys: SigningKeysTable;
  readonly master_keys: MasterKeysTable;
  readonly secret_bundles: SecretBundlesTable;
  readonly request_budgets: RequestBudgetsTable;
  readonly sessions: SessionsTable;
  readonly session_frames: SessionFramesTable;
  readonly session_uploads: SessionUploadsTable;
  readonly session_pieces: SessionPiecesTable;
  readonly session_chunks: SessionChunksTable;
  readonly session_manifests: SessionManifestsTable;
  readonly tenant_keys: TenantKeysTable;
  readonly object_deletions: ObjectDeletionsTable;
  readonly image_blobs: ImageBlobsTable;
  readonly images: ImagesTable;
  readonly image_blob_uses: ImageBlobUsesTable;
  readonly agent_secrets: AgentSecretsTable;
  readonly agent_logs: AgentLogsTable;
  readonly agent_log_parts: AgentLogPartsTable;
  readonly config_updates: ConfigUpdatesTable;
  readonly billing_accounts: BillingAccountsTable;
  readonly ledger_entries: LedgerEntriesTable;
  readonly checkouts: CheckoutsTable;
  readonly topups: TopupsTable;
  readonly provider_events: ProviderEventsTable;
  readonly credit_notices: CreditNoticesTable;
  readonly usage_meters: UsageMetersTable;
  readonly usage_records: UsageRecordsTable;
  readonly usage_days: UsageDaysTable;
  readonly workspaces: WorkspacesTable;
  readonly workspace_files: WorkspaceFilesTable;
  readonly workspace_uploads: WorkspaceUploadsTable;
  readonly workspace_chunks: WorkspaceChunksTable;
  readonly workspace_extents: WorkspaceExtentsTable;
  readonly workspace_flushes: WorkspaceFlushesTable;
  readonly workspace_changes: WorkspaceChangesTable;
}

type CreatedAt = ColumnType<Date, Date | undefined, never>;

interface TenantsTable {
  tenant_id: string;
  email: string;
  plan: Generated<string>;
  /** Number of sandboxes that are not destroyed. The statements that reserve and end them update it. */
  active_sandboxes: Generated<number>;
  created_at: CreatedAt;
}

interface ApiKeysTable {
  key_id: string;
  tenant_id: string;
  /** SHA-256 of the whole key. */
  secret_hash: Buffer;
  prefix: string;
  name: string | null;
  /** Can be up to a minute late. */
  last_used_at: Date | null;
  revoked_at: Date | null;
  created_at: CreatedAt;
}

interface OtpCodesTable {
  email: string;
  code_hash: Buffer;
  attempts: Generated<number>;
  expires_at: Date;
  created_at: CreatedAt;
}

interface OtpRequestsTable {
  kind: OtpSubjectKind;
  subject: string;
  /** Times of the requests of the last hour. */
  hits: Date[];
}

export type OtpSubjectKind = 'email' | 'ip' | 'wrong_code';

interface WorkersTable {
  worker_id: string;
  url: string;
  /** PEM. The only certificate trusted for this worker. */
  certificate: string;
  version: string;
  vcpu: number;
  memory_mib: number;
  disk_mib: number;
  free_memory_mib: number | null;
  free_disk_mib: number | null;
  /** Memory promised to sandboxes that are not destroyed. */
  reserved_memory_mib: Generated<number>;
  templates: JSONColumnType<WorkerTemplate[], string, string>;
  registered_at: Generated<Date>;
  heartbeat_at: Generated<Date>;
  /** Is about to end, with its sandboxes or without, and gets no new ones. */
  draining: Generated<boolean>;
  /** Gets no new sandboxes until an operator says otherwise. */
  cordoned: Generated<boolean>;
  /** An operator wants it to end its sandboxes, and then itself. */
  drain_requested: Generated<boolean>;
  /** When an operator removed it. A worker that registers again is back. */
  removed_at: Date | null;
  /** Random, from 0 to 1. Placement reads the workers that follow a random point. */
  placement_key: Generated<number>;
  /** Of the machine that has registered. Versions before 0054 send none. */
  instance_id: string | null;
  /** When another machine last tried to register as this worker. */
  contested_at: Date | null;
}

interface ControlPlanesTable {
  control_plane_id: string;
  /** The names of the migrations that its version knows. */
  knows: string[];
  heartbeat_at: Generated<Date>;
}

interface RuntimeHostsTable {
  runtime_host_id: string;
  /** What its operator knows it by. */
  name: string;
  heartbeat_at: Generated<Date>;
}

/** A worker or a runtime host that has enrolled. */
interface ComponentsTable {
  component_id: string;
  kind: ComponentKind;
  /** The thumbprint of its public key. */
  key_id: string;
  /** `x` of its Ed25519 public key as a JWK. */
  public_key: string;
  enrolled_at: Generated<Date>;
  /** When its key was last looked up, to the hour. */
  used_at: Generated<Date>;
  revoked_at: Date | null;
}

/** An enrolment token that has been used. */
interface EnrolmentTokensTable {
  token_id: string;
  uses: number;
  expires_at: Date;
}

interface SchemaContractionsTable {
  /** A migration that has taken something away. */
  migration: string;
  /** Versions that do not know this migration still need it. */
  needs: string;
}

interface SandboxesTable {
  vm_id: string;
  tenant_id: string;
  worker_id: string;
  generation: Generated<number>;
  /** Revision of the last applied report from the worker. */
  revision: Generated<number>;
  state: SandboxState;
  template: string;
  vcpu: number | null;
  cpu_fraction: number | null;
  memory_mib: number;
  disk_mib: number | null;
  rootfs: string | null;
  host_port: number | null;
  endpoint: string | null;
  idle_timeout_seconds: number;
  max_lifetime_seconds: number;
  metadata: JSONColumnType<Record<string, unknown>, string, string>;
  persistence_url: string | null;
  agent: Agent | null;
  /** The placement that its worker is asked to run; null in rows that are older than the column. */
  placement: JSONColumnType<SandboxPlacement | null, string | null, string>;
  /** The session that the sandbox belongs to, and its generation. */
  session_id: string | null;
  session_generation: number | null;
  active_connections: Generated<number>;
  cpu_seconds: Generated<number>;
  agent_status: 'running' | 'completed' | 'failed' | null;
  agent_exit_code: number | null;
  created_at: CreatedAt;
  placed_at: Generated<Date>;
  running_at: Date | null;
  delete_requested_at: Date | null;
  ended_at: Date | null;
  end_reason: EndReason | null;
}

/** Sandboxes that a worker holds, and that the ledger lost when it was restored. */
interface QuarantinedSandboxesTable {
  vm_id: string;
  worker_id: string;
  generation: number;
  tenant_id: string;
  /** The last report of its worker. */
  report: JSONColumnType<WorkerSandbox, string, string>;
  /** An operator wants it to end. */
  end_requested: Generated<boolean>;
  quarantined_at: Generated<Date>;
  /** When its worker last reported it. */
  seen_at: Generated<Date>;
}

/** Sandboxes whose rows the ledger removed itself, because they had not started. */
interface ForgottenSandboxesTable {
  vm_id: string;
  /** Of the last one. */
  generation: number;
  forgotten_at: Generated<Date>;
}

interface IdempotencyKeysTable {
  tenant_id: string;
  operation: string;
  key: string;
  body_hash: Buffer;
  /** Id of the resource that the request creates, so that a retry after a crash can find it. */
  subject: string;
  response: JSONColumnType<IdempotentResponse | null, string | null, string>;
  /** The request that creates it. */
  holder: string | null;
  locked_until: Date;
  created_at: CreatedAt;
}

/** A stored answer. */
export interface IdempotentResponse {
  readonly status: number;
  readonly body: unknown;
}

interface AuditRecordsTable {
  id: Generated<string>;
  event: AuditEvent;
  tenant_id: string | null;
  details: JSONColumnType<Record<string, unknown>, string, never>;
  created_at: CreatedAt;
}

interface SigningKeysTable {
  kid: string;
  sealed: Buffer;
  created_at: CreatedAt;
}

interface MasterKeysTable {
  key_id: string;
  current: boolean;
  created_at: CreatedAt;
}

interface SecretBundlesTable {
  tenant_id: string;
  name: string;
  key_names: string[];
  sealed_values: Buffer;
  /** The data key of the values, wrapped by the master key. */
  wrapped_key: Buffer;
  master_key_id: string;
  /** Increases with every rotation, and is never used again for a bundle of this name. */
  version: Generated<number>;
  created_at: CreatedAt;
  last_rotated_at: Date | null;
}

interface RequestBudgetsTable {
  budget: string;
  tenant_id: string;
  used: number;
  window_ends_at: Date;
}

/** A 64-bit integer, which the driver returns as text. */
type BigInteger = ColumnType<string, number | undefined, number>;

interface SessionsTable {
  session_id: string;
  tenant_id: string;
  status: Generated<SessionStatus>;
  /** Incremented by each start. Writes from earlier generations are refused. */
  generation: Generated<number>;
  /** The sandbox of this generation. */
  vm_id: string;
  agent: Agent;
  agent_version: string | null;
  app_id: string;
  set_id: string;
  app: JSONColumnType<AppJson | null, string | null, string>;
  template: string;
  /** What its request named, as it was given; empty in rows that are older than the column. */
  size: JSONColumnType<SandboxSize, string | undefined, string>;
  vendor: LlmVendor;
  requested_model: string | null;
  base_url: string | null;
  /** The model in use. */
  model: string;
  /** Names of secret bundles. */
  secrets: string[];
  user_id: string;
  /** The holder of the lease, and the time when the lease expires. */
  busy_by: string | null;
  busy_until: Date | null;
  last_seq: BigInteger;
  commit_seq: BigInteger;
  /** Whoever numbers the frames of this generation, above `base_seq` and at most up to `reserved_seq`. */
  numbered_by: string | null;
  base_seq: BigInteger;
  reserved_seq: BigInteger;
  conversation: Buffer | null;
  /** 32 bytes for each chunk, in order. Counts only while `conversation` is null. */
  conversation_chunks: Buffer | null;
  /** Size of the content of these chunks. */
  conversation_bytes: ColumnType<string | null, number | null | undefined, number | null>;
  /** When the transcript was moved to the object store; null since the last turn. */
  archived_at: Date | null;
  /** The end of the claim of the control plane that moves it. */
  archiving_until: Date | null;
  /** Names the files: those in `session_manifests`, or an older upload in `session_uploads`. */
  files_id: string | null;
  /** Bytes that are stored for a resume: files as they are stored, conversation and frames. */
  kept_bytes: BigInteger;
  created_at: CreatedAt;
  expires_at: Date;
  ended_at: Date | null;
  /** Set before the session is ended for its erasure. From then on it cannot be resumed. */
  erase_requested_at: Date | null;
  /** When everything that the session kept was erased. From then on nothing is added to it. */
  erased_at: Date | null;
}

interface SessionFramesTable {
  session_id: string;
  first_seq: BigInteger;
  last_seq: BigInteger;
  /** One JSON object per line, UTF-8. Null when the frames are in the object store. */
  frames: Buffer | null;
  /** Their chunks, 32 bytes each, in order. */
  chunk_ids: Buffer | null;
  /** Size of the content of these chunks. */
  size_bytes: ColumnType<string | null, number | undefined, never>;
}

interface SessionUploadsTable {
  upload_id: string;
  session_id: string;
  files_id: string;
  /** Null until the upload is complete. */
  size_bytes: ColumnType<string | null, never, number>;
  committed: Generated<boolean>;
  created_at: CreatedAt;
}

interface SessionPiecesTable {
  upload_id: string;
  piece: number;
  bytes: Buffer;
}

interface ChunkColumns {
  chunk_id: Buffer;
  object_key: string;
  /** Size of the object. */
  stored_bytes: number;
  /** Null until the object was seen in the object store. */
  stored_at: Date | null;
  /** Null while the files or the transcript of its owner contain the chunk. */
  unused_since: Generated<Date | null>;
  /** When the object was found to be missing from the object store. The next save of the content uploads it again. */
  lost_at: Generated<Date | null>;
}

interface SessionChunksTable extends ChunkColumns {
  session_id: string;
  /** Whether the chunk is part of the conversation or the frames, not of the files. */
  of_transcript: Generated<boolean>;
}

interface WorkspaceChunksTable extends ChunkColumns {
  workspace_id: string;
}

interface SessionManifestsTable {
  session_id: string;
  files_id: string;
  size_bytes: BigInteger;
  /** 32 bytes each, in order. */
  chunk_ids: Buffer;
}

interface TenantKeysTable {
  tenant_id: string;
  wrapped_key: Buffer;
  master_key_id: string;
  created_at: CreatedAt;
}

/** Objects that nothing uses any more, or nothing yet. */
interface ObjectDeletionsTable {
  object_key: string;
  due_at: Generated<Date>;
  /** Whether a control plane is deleting it. */
  claimed: Generated<boolean>;
  /** Of the content of a replaced file: the tenant that may still download it. */
  tenant_id: string | null;
  size_bytes: string | null;
}

interface ImageBlobsTable {
  /** SHA-256 of the object. */
  blob_id: Buffer;
  object_key: string;
  stored_bytes: number;
  /** Absent until the upload has ended. */
  stored_at: Date | null;
  /** When a push last counted on it, or an image stopped to contain it. */
  wanted_at: Generated<Date>;
}

interface ImagesTable {
  template: string;
  /** Digest of the recipe. */
  image_id: string;
  arch: string;
  manifest_id: Buffer;
  content_id: Buffer;
  signer: string;
  svc_from: string;
  pushed_at: Generated<Date>;
}

interface ImageBlobUsesTable {
  template: string;
  image_id: string;
  arch: string;
  blob_id: Buffer;
}

interface AgentSecretsTable {
  vm_id: string;
  tenant_id: string;
  sealed_values: Buffer;
  wrapped_key: Buffer;
  master_key_id: string;
}

interface AgentLogsTable {
  vm_id: string;
  /** The stored part of the log: from here to its end. */
  first_byte: BigInteger;
  total_bytes: BigInteger;
  /** Whether the worker sent it when it could grow no more. */
  is_final: boolean;
}

interface AgentLogPartsTable {
  vm_id: string;
  part: BigInteger;
  /** Position of the bytes in the log. */
  first_byte: BigInteger;
  bytes: Buffer;
}

interface ConfigUpdatesTable {
  vm_id: string;
  bundle: string;
  /** The version of the bundle. */
  version: number;
  /** Names of the bundle's keys. */
  keys: string[];
  attempts: Generated<number>;
  due_at: Generated<Date>;
  expires_at: Date;
  /** Null while it is to be delivered. */
  outcome: 'delivered' | 'ended' | 'expired' | null;
  ended_at: Date | null;
}

interface BillingAccountsTable {
  tenant_id: string;
  balance_cents: BigInteger;
  /** Cost of posted usage that is less than a cent. */
  carry_microusd: Generated<number>;
  auto_topup: Generated<boolean>;
  threshold_cents: BigInteger;
  topup_cents: BigInteger;
  /** Failed top-ups since the last one that succeeded. */
  topup_failures: Generated<number>;
  last_topup_at: Date | null;
  customer: string | null;
  payment_method: string | null;
  /** When the provider says that it was saved. Null: before this was noted. */
  payment_method_at: Date | null;
  created_at: CreatedAt;
}

interface LedgerEntriesTable {
  entry_id: Generated<string>;
  seq: Generated<string>;
  tenant_id: string;
  amount_cents: ColumnType<string, number, never>;
  kind: EntryKind;
  reference: string;
  description: string;
  created_at: CreatedAt;
}

export type EntryKind = 'grant' | 'usage' | 'purchase' | 'topup' | 'adjustment';

interface CheckoutsTable {
  checkout_id: string;
  tenant_id: string;
  provider: 'local' | 'stripe';
  amount_cents: ColumnType<string, number, never>;
  page_hash: Buffer | null;
  provider_id: string | null;
  created_at: CreatedAt;
  expires_at: Date;
  paid_at: Date | null;
}

interface TopupsTable {
  topup_id: string;
  tenant_id: string;
  amount_cents: ColumnType<string, number, never>;
  customer: string;
  payment_method: string;
  /** `unknown`: the provider's answer did not arrive in time, or was no longer waited for. An event of the provider can still credit it. */
  state: Generated<'pending' | 'succeeded' | 'failed' | 'unknown'>;
  failure: string | null;
  attempts: Generated<number>;
  due_at: Generated<Date>;
  created_at: CreatedAt;
  ended_at: Date | null;
}

interface ProviderEventsTable {
  event_id: string;
  type: string;
  kind: 'purchase' | 'topup' | null;
  reference: string | null;
  received_at: Generated<Date>;
}

interface CreditNoticesTable {
  vm_id: string;
  attempts: Generated<number>;
  due_at: Generated<Date>;
  ends_at: Date | null;
  created_at: CreatedAt;
}

/** Totals or differences of the counters of `UsageCounters`. */
interface UsageColumns {
  cpu_ms: BigInteger;
  wall_ms: BigInteger;
  input_tokens: BigInteger;
  output_tokens: BigInteger;
  tool_calls: BigInteger;
}

/** The last accepted sample of each sandbox. Its row is removed with the one of the sandbox. */
interface UsageMetersTable extends UsageColumns {
  vm_id: string;
  generation: number;
  tenant_id: string;
  /** 0 until the first sample is accepted. */
  seq: BigInteger;
  /** The sum of the costs of its records, in micro-dollars. */
  cost_microusd: ColumnType<string, string | undefined, string>;
  /** The part of the cost below one micro-dollar, which no record contains yet: see `price.ts`. */
  cost_rest: Generated<number>;
  /** When the last accepted sample was taken, by the database's clock. */
  used_at: Date | null;
  /** Whether its records are one for each day. */
  is_folded: Generated<boolean>;
}

/**
 * What a sandbox has used between two accepted samples, or on a day if it ended long ago. Never changed except for
 * `posted_entry`.
 */
interface UsageRecordsTable extends UsageColumns {
  vm_id: string;
  generation: number;
  seq: BigInteger;
  tenant_id: string;
  /** A whole number of micro-dollars, which the driver returns as text. */
  cost_microusd: ColumnType<string, string, never>;
  used_at: Date;
  /** The ledger entry that charges this record; null until it is posted. */
  posted_entry: string | null;
  created_at: CreatedAt;
}

/** The sums of the records of a tenant per UTC day. */
interface UsageDaysTable extends UsageColumns {
  tenant_id: string;
  /** `YYYY-MM-DD` when written; read it with `to_char`. */
  day: ColumnType<Date, string, never>;
  cost_microusd: ColumnType<string, string, string>;
  /** Sandboxes, and sessions, whose first sample was taken on this day. */
  sandboxes: number;
  sessions: number;
}

interface WorkspacesTable {
  workspace_id: Generated<string>;
  tenant_id: string;
  app_id: string;
  capset_id: string;
  /** The sum of its files, like `file_count`. */
  size_bytes: BigInteger;
  file_count: Generated<number>;
  /** Files, directories and symbolic links. */
  entry_count: Generated<number>;
  /** The version of the last change of an entry. */
  version: Generated<BigInteger>;
  used_at: CreatedAt;
  created_at: CreatedAt;
}

export type WorkspaceEntryKind = 'file' | 'directory' | 'symlink';

interface WorkspaceFilesTable {
  workspace_id: string;
  path: Buffer;
  kind: Generated<WorkspaceEntryKind>;
  mode: Generated<number>;
  size_bytes: BigInteger;
  /** When the entry changed here. */
  modified_at: Date;
  /** As the sandbox set it. */
  mtime_ms: BigInteger | null;
  target: Buffer | null;
  /** The object that is the content of a file, unless it has a `content_id`. */
  object_key: string | null;
  content_id: BigInteger | null;
  extents: Generated<number>;
  version: Generated<BigInteger>;
}

/** A piece of the content of a file: a part of a chunk, or a hole. */
interface WorkspaceExtentsTable {
  workspace_id: string;
  content_id: BigInteger;
  first: BigInteger;
  length: BigInteger;
  chunk_id: Buffer | null;
  chunk_offset: number;
}

interface WorkspaceFlushesTable {
  flush_id: string;
  workspace_id: string;
  vm_id: string;
  state: Generated<'open' | 'closed' | 'committed'>;
  changes: Generated<number>;
  extents: Generated<number>;
  result: JSONColumnType<object | null, string | null, string>;
  touched_at: Generated<Date>;
}

/** A change that a flush has staged. */
interface WorkspaceChangesTable {
  flush_id: string;
  path: Buffer;
  kind: WorkspaceEntryKind | 'deleted';
  mode: number;
  mtime_ms: BigInteger;
  size_bytes: BigInteger;
  target: Buffer | null;
  content_id: BigInteger | null;
  extents: number;
  version: BigInteger | null;
  refusal: string | null;
}

/** An upload that a customer may make, or has made. */
interface WorkspaceUploadsTable {
  upload_id: string;
  workspace_id: string;
  path: Buffer;
  expires_at: Date;
  /** The most bytes that it may have. */
  reserved_bytes: Generated<string>;
  /** When its content became a file, or was refused. */
  taken_at: Date | null;
  created_at: CreatedAt;
}

export type TenantRow = Selectable<TenantsTable>;
export type ApiKeyRow = Selectable<ApiKeysTable>;
export type AuditRow = Selectable<AuditRecordsTable>;
export type SigningKeyRow = Selectable<SigningKeysTable>;
export type SecretBundleRow = Selectable<SecretBundlesTable>;
export type WorkerRow = Selectable<WorkersTable> & {
  /** Time since the last heartbeat, by the clock of the database. */
  readonly silent_ms: number;
};
export type SandboxRow = Selectable<SandboxesTable>;
/** Without the conversation, which only a resume needs, and the progress of its move to the object store. */
export type SessionRow = Omit<
  Selectable<SessionsTable>,
  'conversation' | 'conversation_chunks' | 'conversation_bytes' | 'archived_at' | 'archiving_until'
>;
export type AgentSecretsRow = Selectable<AgentSecretsTable>;
export type TenantKeyRow = Selectable<TenantKeysTable>;
export type NewApiKey = Insertable<ApiKeysTable>;
