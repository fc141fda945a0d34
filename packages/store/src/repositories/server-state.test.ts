import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestServer, type TestServer } from '../../test/test-server.ts';
import { openFleet } from '../open-fleet.ts';

let postgres: TestServer;

beforeAll(async () => {
  postgres = await startTestServer();
});
afterAll(() => postgres?.[Symbol.asyncDispose]());

async function state() {
  await using fleet = openFleet(postgres.url);
  return await fleet.server.read();
}

/** Changes a setting of the whole server, for connections from now on. */
async function configure(...statements: string[]): Promise<void> {
  const client = new pg.Client({ connectionString: postgres.url });
  await client.connect();
  for (const statement of [...statements, 'select pg_reload_conf()']) await client.query(statement);
  await client.end();
}

test('a server describes itself', async () => {
  const found = await state();
  expect(found).toMatchObject({ readOnly: false, waitsForStandby: false });
  expect(found.version).toMatch(/^\d+/);
  expect(Math.abs(found.now.getTime() - Date.now())).toBeLessThan(60_000);
  expect(found.connections).toBeGreaterThan(0);
  expect(found.maxConnections).toBeGreaterThanOrEqual(found.connections);
});

test('a server without its synchronous standby, or without writes, says so', async () => {
  // Its commit waits for nothing yet: the setting holds from the reload on.
  await configure(`alter system set synchronous_standby_names = 'elsewhere'`);
  await expect.poll(state).toMatchObject({ waitsForStandby: true, readOnly: false });
  await configure(
    'alter system reset synchronous_standby_names',
    'alter system set default_transaction_read_only = on',
  );
  await expect.poll(state).toMatchObject({ waitsForStandby: false, readOnly: true });
});
