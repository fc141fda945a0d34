import type { ErrorCode } from '@svc/contract';

/** Codes of every route that reads workspaces, because it takes the uploads that are complete. */
export const READ_PROBLEMS = [
  'validation_failed',
  'object_store_unavailable',
] as const satisfies ErrorCode[];

/** Codes of every route of one file. */
export const FILE_PROBLEMS = [
  ...READ_PROBLEMS,
  'invalid_url',
  'workspace_path_invalid',
] as const satisfies ErrorCode[];
