import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { insertTenants } from '../../../test/insert-tenants.ts';
import { startTestDatabase, type TestDatabase } from '../../../test/test-database.ts';
import { WorkspaceRepository } from './workspace-repository.ts';

const QUOTA = { tenantBytes: 1_000, tenantEntries: 100, entries: 100 };
const LIMITS = { ...QUOTA, graceSeconds: 3_600 };

let database: TestDatabase;
let workspaces: WorkspaceRepository;

beforeAll(async () => {
  database = await startTestDatabase();
  await insertTenants(database.db, 't');
  workspaces = new WorkspaceRepository(database.db);
});
afterAll(() => database?.[Symbol.asyncDispose]());

/** A workspace, and what happens to its file `f`. */
function newWorkspace() {
  const scope = { tenantId: 't', appId: randomUUID(), capsetId: 'c' };
  const path = Buffer.from('f');
  return {
    async begin() {
      const uploadId = randomUUID();
      const begun = await workspaces.beginUpload(
        { ...scope, uploadId, path, sizeBytes: undefined, expiresSeconds: 60 },
        { ...QUOTA, openUploads: 100, uploadBytes: 1, pendingBytes: 100 },
      );
      if (typeof begun === 'string') throw new Error(begun);
      return { ...begun, uploadId };
    },
    /** @param arrived when, in seconds from now by the clock of the object store */
    async take(upload: { workspaceId: string; uploadId: string }, arrived: number) {
      const objectKey = randomUUID();
      await workspaces.reserve(objectKey, 60);
      const modifiedAt = new Date(Date.now() + arrived * 1_000);
      const content = { objectKey, sizeBytes: 1, modifiedAt };
      return workspaces.takeUpload({ tenantId: 't', ...upload, ...content }, LIMITS);
    },
    /** Saves the file of a sandbox. */
    async save() {
      const workspaceId = (await workspaces.open(scope)) ?? '';
      const flush = { flushId: randomUUID(), workspaceId, vmId: 'vm' };
      const file = { path, kind: 'file', mode: 0o644, mtimeMs: 0, sizeBytes: 0 } as const;
      const change = { ...file, target: undefined, extents: [] };
      await workspaces.stageChanges(flush, [change], { changes: 9, extents: 9 });
      await workspaces.commitFlush({ ...flush, tenantId: 't' }, { ...LIMITS, listed: 9 });
    },
  };
}

test('a file that was saved before an upload began is replaced, even if the clock of the objects is behind', async () => {
  const workspace = newWorkspace();
  await workspace.save();
  expect(await workspace.take(await workspace.begin(), -60)).toBe('taken');
});

test('a file that was saved after an upload arrived is kept', async () => {
  const workspace = newWorkspace();
  const upload = await workspace.begin();
  await workspace.save();
  expect(await workspace.take(upload, -60)).toBe('superseded');
});

test('of two uploads the one that arrived last is kept, even if the clock of the objects is behind', async () => {
  const workspace = newWorkspace();
  const [first, last] = [await workspace.begin(), await workspace.begin()];
  expect(await workspace.take(last, -50)).toBe('taken');
  expect(await workspace.take(first, -60)).toBe('superseded');
});
