import { openStore } from '../src/store.ts';
import { SHARED_SERVER } from './test-postgres.ts';
import { startTestServer } from './test-server.ts';

/** Enough for the test files that run at the same time. Nothing here outlives the run. */
const SETTINGS = { max_connections: '500', fsync: 'off', full_page_writes: 'off' };

/**
 * Starts the server of whose template {@link startTestPostgres} makes copies, in this process and its children. To start a
 * server takes longer than most test files. Settles with what stops it.
 */
export async function startSharedServer(): Promise<() => Promise<void>> {
  const server = await startTestServer(SETTINGS);
  const placement = { unreachableMs: 0, sandboxesPerTenant: 0 };
  await (await openStore({ url: server.url, placement })).close();
  process.env[SHARED_SERVER] = server.url;
  return async () => {
    delete process.env[SHARED_SERVER];
    await server[Symbol.asyncDispose]();
  };
}
