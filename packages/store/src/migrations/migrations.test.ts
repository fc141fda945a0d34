import type { Kysely } from 'kysely';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { migrationsUntil } from '../../test/migrations-until.ts';
import { startTestServer, type TestServer } from '../../test/test-server.ts';
import { connect } from '../connect.ts';
import { migrate } from '../migrate.ts';
import { MIGRATION_DEADLINES } from '../pool.ts';
import { AgentLogRepository } from '../repositories/agent-logs/agent-log-repository.ts';
import type { Schema } from '../schema.ts';

const BEFORE = '0020-wrong-codes';

let postgres: TestServer;
let db: Kysely<Schema>;
let sql: pg.Client;

beforeAll(async () => {
  postgres = await startTestServer();
  db = connect(postgres.url, MIGRATION_DEADLINES);
  await migrate(db, migrationsUntil(BEFORE));
  sql = new pg.Client({ connectionString: postgres.url });
  await sql.connect();
  // The rows need no others that they refer to.
  await sql.query('set session_replication_role = replica');
});
afterAll(async () => {
  await sql?.end();
  await db?.destroy();
  await postgres?.[Symbol.asyncDispose]();
});

test('keep what earlier versions have stored', async () => {
  const logs = new Map(
    [0, 1, 65_535, 65_536, 65_537, 200_000].flatMap((length) =>
      [0, 1, 65_536, 70_000].map((before) => [
        `${length} of ${length + before}`,
        { bytes: Buffer.alloc(length, 'abcdefghijk'), totalBytes: length + before },
      ]),
    ),
  );
  for (const [vmId, { bytes, totalBytes }] of logs) {
    await sql.query('insert into agent_logs values ($1, $2, $3)', [vmId, bytes, totalBytes]);
  }
  await sql.query(`insert into object_deletions values ('session', now() - interval '1 hour')`);
  await sql.query(`insert into discarded_objects values
    ('replaced', now() + interval '1 hour', false), ('claimed', now() - interval '1 second', true)`);
  await migrate(db);
  const repository = new AgentLogRepository(db);
  for (const [vmId, log] of logs) {
    expect(await repository.find(vmId), vmId).toEqual({ ...log, isFinal: true });
  }
  const { rows } = await sql.query(
    `select object_key, due_at > now() as later, claimed from object_deletions order by due_at`,
  );
  expect(rows).toEqual([
    { object_key: 'session', later: false, claimed: false },
    { object_key: 'claimed', later: false, claimed: true },
    { object_key: 'replaced', later: true, claimed: false },
  ]);
});
