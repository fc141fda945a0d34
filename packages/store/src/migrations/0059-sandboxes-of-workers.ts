import { type Kysely, sql } from 'kysely';

/**
 * An index by which all sandboxes of a worker are found, also those that are destroyed: the check of the foreign key needs
 * it when a worker is removed. Requests keep using the small `sandboxes_active`.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql.raw('create index sandboxes_worker on sandboxes (worker_id)').execute(db);
}
