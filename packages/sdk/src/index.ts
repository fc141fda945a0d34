/**
 * The client of the svc API.
 *
 * - `client.sandboxes`        create, list, get, delete, exec, execStream, pause, resume, cancel, logs
 * - `client.sandboxes.files`  write, read, readStream
 * - `client.sessions`         create, resume, get, list, delete, connect
 * - `client.tenants`          sign-up by email and one-time code, the caller's account
 * - `client.keys`             API keys, managed with an API key
 * - `client.secrets`          secret bundles: create, rotate, list, get, delete
 * - `client.templates`        the apps for sessions
 * - `client.account`          calls with an account token: sign-in, API keys, audit records
 *
 * Every error response of the service becomes a {@link SvcError} with a stable `code`.
 */

export type {
  ApiKeyRecord,
  AuditEntry,
  AuditQuery,
  BundleRecord,
  CancelReason,
  CancelResponse,
  CatalogueEntry,
  ClientFrame,
  CreateApiKeyRequest,
  CreateApiKeyResponse,
  CreateBundleResponse,
  CreateSandboxRequest,
  CreateSandboxResponse,
  CreateSessionRequest,
  CreateTenantKeyResponse,
  DeleteSandboxResponse,
  DeleteSessionResponse,
  ErrorCode,
  ExecRequest,
  ExecResponse,
  FieldError,
  ListAuditResponse,
  ListSessionsQuery,
  ListSessionsResponse,
  LogsQuery,
  LogsResponse,
  ResumedSession,
  ResumeSessionRequest,
  RotateBundleResponse,
  SandboxRecord,
  SandboxState,
  ServerFrame,
  SessionAccess,
  SessionRecord,
  SessionStatus,
  TenantRecord,
  VerifyOtpResponse,
  VerifyTenantResponse,
} from '@svc/contract';
export { SvcClient, type SvcClientOptions } from './client.ts';
export { SvcError, type SvcErrorCode } from './errors.ts';
export type { Account } from './resources/account.ts';
export type { ExecStreamEvent } from './resources/exec-stream.ts';
export type { FileDownload, Files, UploadSource } from './resources/files.ts';
export type { Keys } from './resources/keys.ts';
export type { CreateOptions, Sandboxes, SandboxList } from './resources/sandboxes.ts';
export type { Secrets, SecretValues } from './resources/secrets.ts';
export type { Sessions } from './resources/sessions.ts';
export type { Templates } from './resources/templates.ts';
export type { Tenants } from './resources/tenants.ts';
export type { SessionConnection } from './sessions/connection.ts';
export type { ScreenshotFrame, SessionFrame } from './sessions/frames.ts';
export type { ConnectOptions, SessionAddress } from './sessions/options.ts';
export type { SocketEnd } from './sessions/socket.ts';
export type { FetchLike } from './transport/fetch.ts';
export type { CallOptions } from './transport/request.ts';
