import { type Kysely, sql } from 'kysely';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { startTestServer, type TestServer } from '../test/test-server.ts';
import { connect } from './connect.ts';
import { contractSchema, IncompatibleSchemaError } from './contraction.ts';
import { migrate } from './migrate.ts';
import { MIGRATIONS } from './migrations/index.ts';
import type { SchemaMigration } from './migrations/schema-migration.ts';
import { MIGRATION_DEADLINES } from './pool.ts';
import { ControlPlaneRepository } from './repositories/control-planes.ts';
import type { Schema } from './schema.ts';

let postgres: TestServer;
let db: Kysely<Schema>;
let old: ControlPlaneRepository;
let young: ControlPlaneRepository;

const OLD = Object.keys(MIGRATIONS);
const [first, second] = [
  '00000000-0000-4000-8000-000000000001',
  '00000000-0000-4000-8000-000000000002',
];
const run = (statement: string) => async (on: Kysely<unknown>) => {
  await sql.raw(statement).execute(on);
};
/** The version after this one: it no longer uses the versions of workers, and takes their column away. */
const YOUNG: Readonly<Record<string, SchemaMigration>> = {
  ...MIGRATIONS,
  '9001-more': { up: run('create table more (id int)') },
  '9002-less': {
    up: run('alter table workers drop column version'),
    contraction: { needs: '9001-more' },
  },
  '9003-more': { up: run('create table yet_more (id int)') },
};
const tables = async () => (await db.introspection.getTables()).map(({ name }) => name);
const hasVersions = async () => {
  const found = (await db.introspection.getTables()).find(({ name }) => name === 'workers');
  return found?.columns.some(({ name }) => name === 'version');
};

beforeAll(async () => {
  postgres = await startTestServer();
  db = connect(postgres.url, MIGRATION_DEADLINES);
});
afterAll(async () => {
  await db?.destroy();
  await postgres?.[Symbol.asyncDispose]();
});
beforeEach(async () => {
  await sql.raw('drop schema public cascade; create schema public').execute(db);
  await migrate(db);
  old = new ControlPlaneRepository(db);
  young = new ControlPlaneRepository(db, Object.keys(YOUNG));
});

describe('two versions on one database', () => {
  test('the older one starts on the schema of the newer one, as long as it only has more', async () => {
    await migrate(db, YOUNG);
    expect(await tables()).toEqual(expect.arrayContaining(['more', 'yet_more']));
    expect(await hasVersions()).toBe(true);
    await migrate(db);
    await old.beat(first);
    await migrate(db, YOUNG);
    await young.beat(second);
  });

  test('what the older one needs is taken away when its last control plane has ended', async () => {
    await migrate(db, YOUNG);
    await old.beat(first);
    await young.beat(second);
    expect(await contractSchema(db, YOUNG)).toEqual(['9002-less']);
    expect(await hasVersions()).toBe(true);
    await old.leave(first);
    expect(await contractSchema(db, YOUNG)).toEqual([]);
    expect(await hasVersions()).toBe(false);
    await young.beat(second);
    await expect(old.beat(first)).rejects.toThrow(IncompatibleSchemaError);
    await migrate(db, YOUNG);
    expect(await contractSchema(db, YOUNG)).toEqual([]);
  });

  test('one that was killed is waited for until it has been silent for 30 seconds', async () => {
    await migrate(db, YOUNG);
    await old.beat(first);
    const silentFor = (seconds: number) =>
      sql`update control_planes set heartbeat_at = now() - make_interval(secs => ${seconds})`.execute(
        db,
      );
    await silentFor(25);
    expect(await contractSchema(db, YOUNG)).toEqual(['9002-less']);
    await silentFor(31);
    expect(await contractSchema(db, YOUNG)).toEqual([]);
  });

  test('one that starts while the schema contracts is refused', async () => {
    await migrate(db, YOUNG);
    const [begun, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const slow: Record<string, SchemaMigration> = {
      ...YOUNG,
      '9002-less': {
        contraction: { needs: '9001-more' },
        up: async (trx) => {
          begun.resolve();
          await released.promise;
          await YOUNG['9002-less']?.up?.(trx);
        },
      },
    };
    const contracted = contractSchema(db, slow);
    await begun.promise;
    const started = expect(old.beat(first)).rejects.toThrow(IncompatibleSchemaError);
    released.resolve();
    expect(await contracted).toEqual([]);
    await started;
  });

  test('a contraction that fails leaves nothing, and runs later', async () => {
    await migrate(db, YOUNG);
    const broken: Record<string, SchemaMigration> = {
      ...YOUNG,
      '9002-less': {
        contraction: { needs: '9001-more' },
        up: run('alter table workers drop column version; select 1 / 0'),
      },
    };
    await expect(contractSchema(db, broken)).rejects.toThrow('division by zero');
    expect(await hasVersions()).toBe(true);
    await old.beat(first);
    await old.leave(first);
    const both = await Promise.all([contractSchema(db, YOUNG), contractSchema(db, YOUNG)]);
    expect(both).toEqual([[], []]);
    expect(await hasVersions()).toBe(false);
  });

  test('knows the versions by their migrations', () => {
    expect(OLD).toContain('0052-control-planes');
    for (const [name, { contraction }] of Object.entries(MIGRATIONS)) {
      if (contraction !== undefined) expect(OLD, name).toContain(contraction.needs);
    }
  });
});
