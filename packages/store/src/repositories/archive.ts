import { type Kysely, sql } from 'kysely';
import type { Schema } from '../schema.ts';

/** The archive of the database's log, from which a backup is restored to a point in time. */
export class ArchiveRepository {
  readonly #db: Kysely<Schema>;

  constructor(db: Kysely<Schema>) {
    this.#db = db;
  }

  /**
   * Whether the last attempt to archive a part of the log failed; false for a server that archives nothing.
   * https://www.postgresql.org/docs/current/monitoring-stats.html#MONITORING-PG-STAT-ARCHIVER-VIEW
   */
  async isFailing(): Promise<boolean> {
    const { rows } = await sql<{ failing: boolean }>`
      select coalesce(last_failed_time > coalesce(last_archived_time, '-infinity'), false) as failing
      from pg_stat_archiver`.execute(this.#db);
    return rows.some(({ failing }) => failing);
  }
}
