import type { ChildProcess } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';

/**
 * Settles when a query of a database, which may not be reachable yet, has one row. Fails after `withinMs`, and when the server
 * `child` has ended.
 */
export async function untilRow(
  url: string,
  query: string,
  { withinMs, child }: { readonly withinMs: number; readonly child?: ChildProcess | undefined },
): Promise<void> {
  const deadline = Date.now() + withinMs;
  for (;;) {
    const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 2_000 });
    client.on('error', () => undefined);
    try {
      await client.connect();
      if ((await client.query(query)).rowCount === 1) return;
    } catch (error) {
      if (Date.now() > deadline || (child !== undefined && child.exitCode !== null)) throw error;
    } finally {
      await client.end().catch(() => undefined);
    }
    if (Date.now() > deadline) throw new Error(`not in time: ${query}`);
    await delay(50);
  }
}
