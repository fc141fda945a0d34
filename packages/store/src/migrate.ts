import { type Kysely, Migrator } from 'kysely';
import { MIGRATIONS } from './migrations/index.ts';

/**
 * Migrates the database to the newest version in one transaction. An advisory lock lets several control planes start at
 * the same time.
 */
export async function migrate<T>(db: Kysely<T>): Promise<void> {
  const migrator = new Migrator({
    db,
    provider: { getMigrations: async () => ({ ...MIGRATIONS }) },
  });
  const { error } = await migrator.migrateToLatest();
  if (error !== undefined) throw error;
}
