import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestLedger, type TestLedger } from '../../test/test-ledger.ts';
import { endExpiredUploads } from './end-expired-uploads.ts';

const HOUR = 3_600;
const LIMIT = 20;

let ledger: TestLedger;

beforeAll(async () => {
  ledger = await startTestLedger();
});
afterAll(() => ledger?.[Symbol.asyncDispose]());

/** A workspace with uploads that expired two hours ago or earlier. */
async function workspaceWith(uploads: number, hoursAgo: number): Promise<string> {
  const { rows } = await ledger.sql.query(
    `insert into workspaces (tenant_id, app_id, capset_id) values ('t', $1, 'c')
     returning workspace_id`,
    [randomUUID()],
  );
  const workspaceId = String(rows[0]?.workspace_id);
  await ledger.sql.query(
    `insert into workspace_uploads (upload_id, workspace_id, path, expires_at)
     select gen_random_uuid(), $1, 'f', now() - make_interval(hours => $2)
     from generate_series(1, $3)`,
    [workspaceId, hoursAgo, uploads],
  );
  return workspaceId;
}

const uploadsOf = async (workspaceId: string) =>
  (await ledger.sql.query('select from workspace_uploads where workspace_id = $1', [workspaceId]))
    .rowCount;

test('ends the expired uploads of a workspace although those of another one cannot be taken', async () => {
  const broken = await workspaceWith(LIMIT, 9);
  const other = await workspaceWith(1, 2);
  const taker = {
    async takeAll({ workspaceId }: { workspaceId: string }) {
      if (workspaceId === broken) throw new Error('the object cannot be copied');
      return 0;
    },
  };
  const parts = { store: ledger.store, taker };
  await expect(endExpiredUploads(parts, HOUR, LIMIT, AbortSignal.timeout(30_000))).rejects.toThrow(
    broken,
  );
  expect(await uploadsOf(other)).toBe(0);
  expect(await uploadsOf(broken)).toBe(LIMIT);
});
