import type { NewIndex } from './schema-migration.ts';

/**
 * An index by which all sandboxes of a worker are found, also those that are destroyed: the check of the foreign key needs
 * it when a worker is removed. Requests keep using the small `sandboxes_active`.
 */
export const indexes: readonly NewIndex[] = [
  { name: 'sandboxes_worker', on: 'sandboxes (worker_id)' },
];
