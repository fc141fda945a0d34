import { type Kysely, Migrator } from 'kysely';
import { MIGRATIONS } from './migrations/index.ts';

/**
 * Brings the database to the newest version: all in one transaction, under an advisory lock, so
 * that several control planes may start at once.
 */
export async function migrate<T>(db: Kysely<T>): Promise<void> {
  const migrator = new Migrator({
    db,
    provider: { getMigrations: async () => ({ ...MIGRATIONS }) },
  });
  const { error } = await migrator.migrateToLatest();
  if (error !== undefined) throw error;
}
