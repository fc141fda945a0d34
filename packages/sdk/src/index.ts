/**
 * The client of the svc API.
 *
 * - `client.sandboxes`        create, list, get, delete, exec, execStream, connect, access, pause,
 *                             resume, cancel, logs
 * - `client.sandboxes.files`  write, read, readStream
 * - `client.sessions`         create, resume, get, list, delete, connect
 * - `client.tenants`          sign-up by email and one-time code, the caller's account
 * - `client.keys`             API keys, managed with an API key
 * - `client.secrets`          secret bundles: create, rotate, list, get, delete
 * - `client.templates`        the apps for sessions
 * - `client.billing`          credit, transactions, purchases and top-ups, with an account token
 * - `client.usage`            what the tenant has used: this month, each day
 * - `client.dashboard`        the same in more detail, with an account token
 * - `client.workspaces`       persistent files, with an account token: list, files, usage, read, readStream, write,
 *                             downloadUrl, uploadUrl, delete, deleteAll
 * - `client.account`          calls with an account token: sign-in, API keys, audit records
 *
 * Every error response of the service becomes a {@link SvcError} with a stable `code`.
 */

export type {
  AgentVersions,
  ApiKeyRecord,
  AuditEntry,
  AuditQuery,
  AutoTopupConfig,
  BillingTransaction,
  BundleRecord,
  CancelReason,
  CancelResponse,
  CatalogueEntry,
  CheckoutResponse,
  ClientFrame,
  CreateApiKeyRequest,
  CreateApiKeyResponse,
  CreateBundleResponse,
  CreatePortLinkRequest,
  CreateSandboxRequest,
  CreateSandboxResponse,
  CreateSessionRequest,
  CreateTenantKeyResponse,
  CurrentUsage,
  DailyUsageEntry,
  DailyUsageQuery,
  DailyUsageResponse,
  DashboardOverview,
  DashboardSandbox,
  DashboardSandboxesQuery,
  DashboardSandboxesResponse,
  DeleteSandboxResponse,
  DeleteSessionResponse,
  DesktopCallName,
  DesktopCalls,
  ErrorCode,
  ExecRequest,
  ExecResponse,
  FieldError,
  InfraUsage,
  ListAuditResponse,
  ListSessionsQuery,
  ListSessionsResponse,
  ListWorkspaceFilesResponse,
  LogsQuery,
  LogsResponse,
  PortLink,
  PresignedUrl,
  ResumedSession,
  ResumeSessionRequest,
  RotateBundleResponse,
  SandboxAccess,
  SandboxRecord,
  SandboxState,
  ServerFrame,
  SessionAccess,
  SessionRecord,
  SessionStatus,
  TenantRecord,
  TransactionsQuery,
  UsageHistoryEntry,
  UsageHistoryQuery,
  UsageHistoryResponse,
  VerifyOtpResponse,
  VerifyTenantResponse,
  ViewRegion,
  ViewUpdate,
  WatchArguments,
  Workspace,
  WorkspaceFile,
  WorkspaceFilesQuery,
  WorkspaceUsage,
} from '@svc/contract';
export { SvcClient, type SvcClientOptions } from './client.ts';
export { SvcError, type SvcErrorCode } from './errors.ts';
export type { Account } from './resources/account.ts';
export type { Billing } from './resources/billing.ts';
export type { Dashboard } from './resources/dashboard.ts';
export type { ExecStreamEvent } from './resources/exec-stream.ts';
export type { Files, UploadSource } from './resources/files.ts';
export type { Keys } from './resources/keys.ts';
export type { CreateOptions, Sandboxes, SandboxList } from './resources/sandboxes.ts';
export type { Secrets, SecretValues } from './resources/secrets.ts';
export type { DeleteSessionOptions, Sessions } from './resources/sessions.ts';
export type { Templates } from './resources/templates.ts';
export type { Tenants } from './resources/tenants.ts';
export type { Usage } from './resources/usage.ts';
export type { WorkspaceId, WorkspaceSource, Workspaces } from './resources/workspaces.ts';
export type { SessionConnection } from './sessions/connection.ts';
export type { DesktopView } from './sessions/desktop-view.ts';
export type { ReadyFrame, ScreenshotFrame, SessionFrame } from './sessions/frames.ts';
export type { ConnectOptions, SessionAddress } from './sessions/options.ts';
export type { SocketEnd } from './sessions/socket.ts';
export type { FileDownload } from './transport/download.ts';
export type { FetchLike } from './transport/fetch.ts';
export type { CallOptions } from './transport/request.ts';
