import type {
  Agent,
  AppJson,
  AuditEvent,
  EndReason,
  LlmVendor,
  SandboxPlacement,
  SandboxState,
  SessionStatus,
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
  readonly sandboxes: SandboxesTable;
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
  readonly agent_secrets: AgentSecretsTable;
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

export type OtpSubjectKind = 'email' | 'ip';

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

interface IdempotencyKeysTable {
  tenant_id: string;
  operation: string;
  key: string;
  body_hash: Buffer;
  /** Id of the resource that the request creates, so that a retry after a crash can find it. */
  subject: string;
  response: JSONColumnType<IdempotentResponse | null, string | null, string>;
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
  /** Incremented by every rotation. */
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
  conversation: Buffer | null;
  files_id: string | null;
  created_at: CreatedAt;
  expires_at: Date;
  ended_at: Date | null;
}

interface SessionFramesTable {
  session_id: string;
  first_seq: BigInteger;
  last_seq: BigInteger;
  /** One JSON object per line, UTF-8. */
  frames: Buffer;
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

interface AgentSecretsTable {
  vm_id: string;
  tenant_id: string;
  sealed_values: Buffer;
  wrapped_key: Buffer;
  master_key_id: string;
}

export type TenantRow = Selectable<TenantsTable>;
export type ApiKeyRow = Selectable<ApiKeysTable>;
export type AuditRow = Selectable<AuditRecordsTable>;
export type SigningKeyRow = Selectable<SigningKeysTable>;
export type SecretBundleRow = Selectable<SecretBundlesTable>;
export type WorkerRow = Selectable<WorkersTable>;
export type SandboxRow = Selectable<SandboxesTable>;
/** Without the conversation, which only a resume needs. */
export type SessionRow = Omit<Selectable<SessionsTable>, 'conversation'>;
export type AgentSecretsRow = Selectable<AgentSecretsTable>;
export type NewApiKey = Insertable<ApiKeysTable>;
