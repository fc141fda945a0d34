import { type ErrorCode, ServiceError } from '@svc/contract';
import { MicrovmError, type MicrovmErrorCode } from '@svc/microvm';

/** The public error code for each failure of a running VM. */
const IN_SANDBOX: Record<MicrovmErrorCode, ErrorCode> = {
  unknown_template: 'unknown_template',
  no_capacity: 'no_capacity',
  disk_full: 'disk_full',
  host_disk_full: 'disk_full',
  boot_failed: 'boot_failed',
  vm_gone: 'sandbox_not_running',
  guest_unreachable: 'guest_unresponsive',
  timeout: 'guest_unresponsive',
  aborted: 'guest_unresponsive',
  parent_not_found: 'parent_not_found',
  parent_not_directory: 'parent_not_directory',
  symlink_loop: 'symlink_loop',
  cwd_not_found: 'cwd_not_found',
  is_directory: 'is_directory',
  file_not_found: 'file_not_found',
  not_a_file: 'not_regular_file',
  permission_denied: 'invalid_path',
  port_unreachable: 'port_unreachable',
  pause_failed: 'guest_unresponsive',
  resume_failed: 'guest_unresponsive',
  internal: 'internal_error',
};

/** Details where the code's standard sentence does not fit. */
const DETAILS: Partial<Record<MicrovmErrorCode, string>> = {
  host_disk_full: 'The worker of this sandbox is short of disk; try again later.',
  permission_denied: 'This path cannot be written or read in the sandbox; choose another.',
  pause_failed: 'The sandbox could not be paused and is still running; try again.',
  resume_failed: 'The sandbox could not be resumed and is still paused; try again.',
};

/** Translates a failure inside a sandbox to an error of the catalogue; returns other errors unchanged. */
export function toSandboxError(error: unknown): unknown {
  if (error instanceof MicrovmError) {
    return new ServiceError(IN_SANDBOX[error.code], DETAILS[error.code], { cause: error });
  }
  return isTimeout(error)
    ? new ServiceError('guest_unresponsive', undefined, { cause: error })
    : error;
}

/** Translates a failure to make a VM to an error of the catalogue. */
export function toCreateError(error: unknown): ServiceError {
  if (error instanceof ServiceError) return error;
  const code = codeOf(error);
  if (code === 'unknown_template') return new ServiceError('unknown_template');
  const isFull = code !== undefined && FULL.includes(code);
  return new ServiceError(isFull ? 'no_capacity' : 'boot_failed', undefined, { cause: error });
}

/** Codes, of micro-VMs and of the system, that mean that the worker is out of memory or disk. */
const FULL = ['no_capacity', 'disk_full', 'host_disk_full', 'ENOSPC', 'EDQUOT', 'ENOMEM'];

function codeOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('code' in error)) return undefined;
  return typeof error.code === 'string' ? error.code : undefined;
}

/** Whether the error comes from an `AbortSignal.timeout`. */
function isTimeout(error: unknown): boolean {
  return error instanceof DOMException && error.name === 'TimeoutError';
}
