import type { ErrorCode } from '@svc/contract';

/** Codes of every route that calls the worker of the sandbox. */
export const WORKER_PROBLEMS = [
  'sandbox_not_found',
  'sandbox_not_running',
  'worker_unreachable',
  'worker_bad_response',
  'guest_unresponsive',
  'workspace_unavailable',
  'workspace_too_large',
] as const satisfies ErrorCode[];

/** As {@link WORKER_PROBLEMS}, for routes that take a JSON body. */
export const USE_PROBLEMS = [
  ...WORKER_PROBLEMS,
  'invalid_json',
  'validation_failed',
  'payload_too_large',
  'unsupported_media_type',
] as const satisfies ErrorCode[];

/** Codes of invalid paths. */
export const PATH_PROBLEMS = [
  'validation_failed',
  'path_required',
  'path_not_absolute',
  'path_traversal',
  'invalid_path',
  'symlink_loop',
  'is_directory',
  'not_regular_file',
] as const satisfies ErrorCode[];
