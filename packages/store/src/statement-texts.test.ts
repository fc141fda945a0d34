import { randomUUID } from 'node:crypto';
import type { WorkerSandbox } from '@svc/contract';
import pg from 'pg';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { startTestPostgres, type TestPostgres } from '../test/test-postgres.ts';
import { openStore, type Store } from './store.ts';

let postgres: TestPostgres;
let store: Store;

beforeAll(async () => {
  postgres = await startTestPostgres();
  const placement = { unreachableMs: 30_000, sandboxesPerTenant: 100 };
  store = await openStore({ url: postgres.url, placement });
});
afterAll(async () => {
  await store?.close();
  await postgres?.[Symbol.asyncDispose]();
});

/** The texts of the prepared statements that were sent while `use` ran. */
async function textsOf(use: () => Promise<unknown>): Promise<Set<string>> {
  const query = vi.spyOn(pg.Client.prototype, 'query');
  try {
    await use();
    const sent = query.mock.calls.map(([config]) => config as { name?: string; text?: string });
    return new Set(sent.flatMap(({ name, text }) => (name === undefined ? [] : [text ?? ''])));
  } finally {
    query.mockRestore();
  }
}

function report(): WorkerSandbox {
  return {
    vm_id: `vm_${randomUUID()}`,
    generation: 1,
    state: 'running',
    active_connections: 0,
    cpu_seconds: 1,
  } as WorkerSandbox;
}

const ids = (count: number) => Array.from({ length: count }, () => `vm_${randomUUID()}`);

test.each([
  [
    'reports',
    (count: number) => store.sandboxes.applyReports('w', Array.from({ length: count }, report)),
  ],
  [
    'complete reports',
    (count: number) =>
      store.sandboxes.compareReports('w', Array.from({ length: count }, report), true),
  ],
  [
    'endings',
    (count: number) =>
      store.sandboxes.endAll(ids(count).map((vmId) => ({ vmId, reason: 'deleted' as const }))),
  ],
  [
    'sandboxes',
    (count: number) => Promise.all(ids(count).map((id) => store.sandboxes.find('t', id))),
  ],
  ['workers', (count: number) => Promise.all(ids(count).map((id) => store.workers.find(id)))],
  ['keys', (count: number) => Promise.all(ids(count).map((id) => store.apiKeys.findOwner(id)))],
])('one prepared statement serves any number of %s', async (_, use) => {
  const [one, many] = [await textsOf(() => use(1)), await textsOf(() => use(20))];
  expect(one.size).toBe(1);
  expect(many).toEqual(one);
});
