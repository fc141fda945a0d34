import { type Kysely, sql } from 'kysely';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { migrationsUntil } from '../../test/migrations-until.ts';
import { startTestServer, type TestServer } from '../../test/test-server.ts';
import { connect } from '../connect.ts';
import { migrate } from '../migrate.ts';
import { MIGRATION_DEADLINES } from '../pool.ts';
import type { Schema } from '../schema.ts';
import { MIGRATIONS } from './index.ts';
import type { SchemaMigration } from './schema-migration.ts';

/** The last migration from before versions ran side by side. */
const BASELINE = '0032-worker-orders';

let postgres: TestServer;
let db: Kysely<Schema>;

beforeAll(async () => {
  postgres = await startTestServer();
  db = connect(postgres.url, MIGRATION_DEADLINES);
  await migrate(db, migrationsUntil(BASELINE));
});
afterAll(async () => {
  await db?.destroy();
  await postgres?.[Symbol.asyncDispose]();
});

/** What statements of the version before rely on: columns that exist, and that they may leave out. */
async function relied<T>(on: Kysely<T>): Promise<Map<string, string>> {
  const { rows } = await sql<{ name: string; table: string; kind: string; required: boolean }>`
    select table_name || '.' || column_name as name, table_name as table, data_type as kind,
      is_nullable = 'NO' and column_default is null and is_identity = 'NO' as required
    from information_schema.columns where table_schema = 'public'`.execute(on);
  return new Map(
    rows.map(({ name, kind, required }) => [name, `${kind}${required ? ', required' : ''}`]),
  );
}

/** How a migration that says that it expands the schema breaks the version before. */
async function breaks({ up }: SchemaMigration, isKept: boolean): Promise<string[]> {
  const broken: string[] = [];
  const undo = new Error('undo');
  const apply = db.transaction().execute(async (trx) => {
    const before = await relied(trx);
    await up?.(trx);
    const after = await relied(trx);
    const tables = new Set([...before.keys()].map((name) => name.split('.')[0]));
    for (const [name, kind] of before) {
      if (after.get(name) !== kind) broken.push(`${name} was ${kind}, is ${after.get(name)}`);
    }
    for (const [name, kind] of after) {
      const isNew = !before.has(name) && tables.has(name.split('.')[0]);
      if (isNew && kind.endsWith('required')) broken.push(`${name} is new and required`);
    }
    if (!isKept) throw undo;
  });
  await apply.catch((error) => {
    if (error !== undo) throw error;
  });
  return broken;
}

test('a migration without `contraction` takes nothing away from the version before', async () => {
  for (const [name, migration] of Object.entries(MIGRATIONS)) {
    if (name <= BASELINE || migration.contraction !== undefined) continue;
    expect(await breaks(migration, true), name).toEqual([]);
  }
});

test.each([
  ['drop column', 'alter table workers drop column version', 'workers.version was text'],
  ['rename', 'alter table workers rename column version to build', 'workers.version was text'],
  ['drop table', 'drop table request_budgets', 'request_budgets'],
  ['another type', 'alter table workers alter column vcpu type text', 'workers.vcpu was integer'],
  ['not null', 'alter table sandboxes alter column agent set not null', 'sandboxes.agent was text'],
  ['a required column', 'alter table workers add column x int not null', 'workers.x is new'],
])('notices %s', async (_what, statement, problem) => {
  const up = async (trx: Kysely<unknown>) => {
    await sql.raw(statement).execute(trx);
  };
  expect((await breaks({ up }, false)).join('\n')).toContain(problem);
});
