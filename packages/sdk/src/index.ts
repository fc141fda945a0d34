/**
 * The client of the svc API.
 *
 * - `client.sandboxes`        create, list, get, delete, exec, execStream, pause, resume, cancel, logs
 * - `client.sandboxes.files`  write, read, readStream
 * - `client.tenants`          sign-up by email and one-time code, the own account
 *
 * Every failure that the service answers is a {@link SvcError} with a stable `code`.
 */

export type {
  CancelReason,
  CancelResponse,
  CreateSandboxRequest,
  CreateSandboxResponse,
  DeleteSandboxResponse,
  ErrorCode,
  ExecRequest,
  ExecResponse,
  FieldError,
  LogsQuery,
  LogsResponse,
  SandboxRecord,
  SandboxState,
  TenantRecord,
  VerifyTenantResponse,
} from '@svc/contract';
export { SvcClient, type SvcClientOptions } from './client.ts';
export { SvcError, type SvcErrorCode } from './errors.ts';
export type { ExecStreamEvent } from './resources/exec-stream.ts';
export type { FileDownload, Files, UploadSource } from './resources/files.ts';
export type { CreateOptions, Sandboxes, SandboxList } from './resources/sandboxes.ts';
export type { Tenants } from './resources/tenants.ts';
export type { FetchLike } from './transport/fetch.ts';
export type { CallOptions } from './transport/request.ts';
