import type { NewIndex } from './schema-migration.ts';

/** Indexes by which the flushes and uploads of a workspace are found when it is removed. */
export const indexes: readonly NewIndex[] = [
  { name: 'workspace_flushes_workspace', on: 'workspace_flushes (workspace_id)' },
  { name: 'workspace_uploads_workspace', on: 'workspace_uploads (workspace_id)' },
];
