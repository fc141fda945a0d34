import { MIGRATIONS } from '../src/migrations/index.ts';
import type { SchemaMigration } from '../src/migrations/schema-migration.ts';

/** The migrations of an earlier version, up to the one with this name. */
export function migrationsUntil(last: string): Readonly<Record<string, SchemaMigration>> {
  return Object.fromEntries(Object.entries(MIGRATIONS).filter(([name]) => name <= last));
}
