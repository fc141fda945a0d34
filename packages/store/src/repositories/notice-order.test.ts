import { sql } from 'kysely';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { insertSandbox, removeSandboxes } from '../../test/insert-sandbox.ts';
import { insertSession } from '../../test/insert-session.ts';
import { insertTenants } from '../../test/insert-tenants.ts';
import { startTestDatabase, type TestDatabase } from '../../test/test-database.ts';
import { updateNotices } from './billing/credit-notices.ts';
import { announce } from './config-updates.ts';

const TENANT = 'usr_1';
/** In another order than that of their ids. */
const IDS = ['vm_3', 'vm_1', 'vm_2'];

let database: TestDatabase;

beforeAll(async () => {
  database = await startTestDatabase();
  const { db } = database;
  await insertTenants(db, TENANT);
  await db.insertInto('billing_accounts').values({ tenant_id: TENANT }).execute();
  const row = { worker_id: 'w', url: 'https://127.0.0.1:1', certificate: 'pem', version: '0' };
  const room = { vcpu: 2, memory_mib: 65_536, disk_mib: 65_536, templates: '[]' };
  await db
    .insertInto('workers')
    .values({ ...row, ...room })
    .execute();
});
afterAll(() => database?.[Symbol.asyncDispose]());
beforeEach(async () => {
  const { db } = database;
  await removeSandboxes(db);
  for (const vm_id of IDS) {
    const session_id = await insertSession(db, TENANT);
    await db
      .updateTable('sessions')
      .set({ vm_id, secrets: ['keys'] })
      .where('session_id', '=', session_id)
      .execute();
    await insertSandbox(db, { vm_id, tenant_id: TENANT, worker_id: 'w', session_id });
  }
});

/** The sandboxes with a notice, in the order in which the notices were added. */
async function added(table: 'credit_notices' | 'config_updates'): Promise<string[]> {
  const { rows } = await sql<{ vm_id: string }>`
    select vm_id from ${sql.table(table)} order by ctid`.execute(database.db);
  return rows.map(({ vm_id }) => vm_id);
}

test('notices of missing credit are added in the order of the sandboxes', async () => {
  await updateNotices(database.db);
  expect(await added('credit_notices')).toEqual([...IDS].sort());
  await sql`update billing_accounts set balance_cents = 1`.execute(database.db);
  await updateNotices(database.db);
  expect(await added('credit_notices')).toEqual([]);
});

test('notices of rotated secrets are added in the order of the sandboxes', async () => {
  const bundle = { tenant_id: TENANT, name: 'keys', version: 2, key_names: ['KEY'] };
  await database.db.transaction().execute((trx) => announce(trx, bundle, 60));
  expect(await added('config_updates')).toEqual([...IDS].sort());
});
