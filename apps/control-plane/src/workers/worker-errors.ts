import { ERRORS, type ErrorCode, isErrorCode, Problem, ServiceError } from '@svc/contract';
import { Compile } from 'typebox/compile';
import { objectStoreUnavailable } from '../objects/object-failures.ts';
import { BadAnswer, readProblem, type WorkerResponse } from './read-answer.ts';

/** Codes that pass through to callers, with the worker's detail. */
const FOR_CALLERS: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'sandbox_not_found',
  'sandbox_not_running',
  'stale_generation',
  'no_capacity',
  'unknown_template',
  'agent_version_unavailable',
  'boot_failed',
  'secrets_too_large',
  'session_files_damaged',
  'guest_unresponsive',
  'workspace_unavailable',
  'workspace_too_large',
  'logs_unavailable',
  'too_many_execs',
  'command_required',
  'cwd_not_found',
  'payload_too_large',
  'missing_body',
  'invalid_path',
  'path_required',
  'path_not_absolute',
  'path_traversal',
  'parent_not_found',
  'parent_not_directory',
  'symlink_loop',
  'is_directory',
  'not_regular_file',
  'file_not_found',
  'disk_full',
  'port_not_allowed',
  'port_unreachable',
  'too_many_port_connections',
]);

/** Codes about the two programs, which a caller cannot act on. */
const INTERNAL: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'bad_request',
  'invalid_url',
  'invalid_json',
  'validation_failed',
  'route_not_found',
  'method_not_allowed',
  'request_timeout',
  'unsupported_media_type',
  'headers_too_large',
  'internal_error',
]);

const NOT_CONNECTED = /^(ECONNREFUSED$|CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_)/;
const MAX_DETAIL_CHARS = 500;
const problemForm = Compile(Problem);

/** A worker refused the control plane's own credential: the two do not share one cluster secret. */
export class WorkerRefusedCredential extends ServiceError {
  constructor(workerId: string) {
    super('worker_unreachable', undefined, {
      cause: new Error(`Worker ${workerId} refuses the control plane's token.`),
    });
  }
}

/**
 * A worker that is about to end has refused a call, or nothing listens at its address: it has not begun the call, which may
 * be repeated.
 */
export class WorkerNotReached extends ServiceError {
  constructor(cause: Error) {
    super('worker_unreachable', undefined, { cause });
  }
}

/** Converts a response with status 400 or above to an error. @throws BadAnswer when a worker may not send it */
export async function errorFromWorker(
  workerId: string,
  response: WorkerResponse,
): Promise<ServiceError> {
  const { code, detail } = await readProblem(response, problemForm);
  if (!isErrorCode(code)) throw new BadAnswer('the error code is unknown');
  if (ERRORS[code].status !== response.statusCode) {
    throw new BadAnswer(`status ${response.statusCode} does not belong to ${code}`);
  }
  if (code === 'unauthorized') return new WorkerRefusedCredential(workerId);
  if (code === 'shutting_down') {
    return new WorkerNotReached(new Error(`Worker ${workerId} is about to end.`));
  }
  return errorFromCode(workerId, code, detail);
}

/** Converts an error that a worker names. @throws BadAnswer when a worker may not name it */
export function errorFromCode(workerId: string, code: ErrorCode, detail: string): ServiceError {
  const cause = new Error(
    `Worker ${workerId} answered ${code}: ${detail.slice(0, MAX_DETAIL_CHARS)}`,
  );
  if (code === 'shutting_down') return workerUnreachable(cause);
  if (code === 'object_store_unavailable') return objectStoreUnavailable(cause);
  if (INTERNAL.has(code)) return new ServiceError('internal_error', undefined, { cause });
  if (!FOR_CALLERS.has(code)) throw new BadAnswer(`${code} is not an error of workers`);
  return new ServiceError(code, detail.slice(0, MAX_DETAIL_CHARS), { cause });
}

/** The error for a worker that broke the contract. */
export function badResponseError(workerId: string, cause: BadAnswer): ServiceError {
  return new ServiceError('worker_bad_response', undefined, {
    cause: new Error(`Worker ${workerId} gave a bad answer.`, { cause }),
  });
}

/** The error for a worker that cannot be reached, or falls silent before its answer is complete. */
export function unreachableError(workerId: string, cause: unknown): ServiceError {
  const failure = new Error(`Worker ${workerId} does not answer.`, { cause });
  return isRefusedConnection(cause) ? new WorkerNotReached(failure) : workerUnreachable(failure);
}

/** Nothing listens there, or another process of the worker, whose certificate is not registered yet. */
function isRefusedConnection(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = 'code' in error && typeof error.code === 'string' ? error.code : '';
  return NOT_CONNECTED.test(code) || isRefusedConnection(error.cause);
}

function workerUnreachable(cause: Error): ServiceError {
  return new ServiceError('worker_unreachable', undefined, { cause });
}
