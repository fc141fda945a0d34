import { type Kysely, sql, type Transaction } from 'kysely';
import { executedMigrations, noteExecuted } from './executed-migrations.ts';
import { MIGRATIONS } from './migrations/index.ts';
import type { SchemaMigration } from './migrations/schema-migration.ts';
import { ago } from './remove-batch.ts';
import type { Schema } from './schema.ts';

/** Held shared by those who join the control planes, and alone by those who take something out of the schema. */
const LOCK = 7_210_551_914_204;
/** A control plane that has been silent for this long is not alive. */
const SILENT_SECONDS = 30;

/** The schema no longer has what this version needs. */
export class IncompatibleSchemaError extends Error {
  override readonly name = 'IncompatibleSchemaError';

  constructor(needed: string) {
    super(`the database is for a newer version of svc: this one does not know migration ${needed}`);
  }
}

/**
 * Runs the contractions of the schema that no control plane is in the way of, each in a transaction of its own. Returns the
 * names of those that have to wait.
 */
export async function contractSchema(
  db: Kysely<Schema>,
  migrations: Readonly<Record<string, SchemaMigration>> = MIGRATIONS,
): Promise<string[]> {
  const executed = await executedMigrations(db);
  const pending = Object.entries(migrations).filter(
    ([name, { contraction }]) => contraction !== undefined && !executed.has(name),
  );
  const waiting = pending.map(([name]) => name);
  for (const [name, migration] of pending) {
    const isDone = await db.transaction().execute((trx) => runContraction(trx, name, migration));
    if (!isDone) break;
    waiting.shift();
  }
  return waiting;
}

/**
 * Checks that this schema has what a control plane needs that knows these migrations. In a transaction that goes on to note
 * that the control plane is alive, no contraction can come between the two. @throws IncompatibleSchemaError
 */
export async function requireCompatible(
  trx: Transaction<Schema>,
  known: readonly string[],
): Promise<void> {
  await sql`select pg_advisory_xact_lock_shared(${LOCK}::bigint)`.execute(trx);
  const missing = await trx
    .selectFrom('schema_contractions')
    .select('needs')
    .where('needs', 'not in', known)
    .orderBy('needs', 'desc')
    .executeTakeFirst();
  if (missing !== undefined) throw new IncompatibleSchemaError(missing.needs);
}

/** False when a control plane is alive that still needs what the migration takes away. */
async function runContraction(
  trx: Transaction<Schema>,
  name: string,
  { up, contraction }: SchemaMigration,
): Promise<boolean> {
  await sql`select pg_advisory_xact_lock(${LOCK}::bigint)`.execute(trx);
  if ((await executedMigrations(trx)).has(name)) return true;
  const needs = contraction?.needs ?? name;
  const inTheWay = await trx
    .selectFrom('control_planes')
    .select('control_plane_id')
    .where(sql<boolean>`heartbeat_at > ${ago(SILENT_SECONDS)} and not ${needs} = any(knows)`)
    .limit(1)
    .executeTakeFirst();
  if (inTheWay !== undefined) return false;
  await up?.(trx);
  await trx.insertInto('schema_contractions').values({ migration: name, needs }).execute();
  await noteExecuted(trx, name);
  return true;
}
