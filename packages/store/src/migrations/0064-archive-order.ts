import type { NewIndex } from './schema-migration.ts';

/**
 * An index for the order in which transcripts are moved to the object store. Only the version before still uses
 * `sessions_unarchived`.
 */
export const indexes: readonly NewIndex[] = [
  {
    name: 'sessions_archive_order',
    on: `sessions (coalesce(archiving_until, ended_at))
      where ended_at is not null and archived_at is null and erased_at is null`,
  },
];
