import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { EmbeddedPostgres } from '../embedded-postgres.ts';
import { backUpLocked } from './back-up.ts';

/** For reading the archive. */
const RECOVERY_MS = 3_600_000;
const POLL_MS = 200;

/**
 * Runs the server of a restored copy until it has read the archive, and backs it up. Returns when the last change was
 * committed that the archive had. Throws with the reason that the server logged. The caller must hold the lock of the backups.
 */
export async function recover(directory: string, backups: string): Promise<Date | undefined> {
  const logFile = join(directory, 'postgres.log');
  const logged = (await readFile(logFile, 'utf8').catch(() => '')).length;
  try {
    const server = await EmbeddedPostgres.start({
      dataDirectory: directory,
      duringRestore: true,
      readyMs: RECOVERY_MS,
    });
    try {
      return await finish(server.url, join(directory, 'postgres'), backups);
    } finally {
      await server.close();
    }
  } catch (cause) {
    const reason = reasonIn(await readFile(logFile, 'utf8').catch(() => ''), logged);
    if (reason === undefined) throw cause;
    throw new Error(`PostgreSQL could not be restored: ${reason}`, { cause });
  }
}

async function finish(url: string, cluster: string, backups: string): Promise<Date | undefined> {
  const client = new pg.Client({ connectionString: url, query_timeout: RECOVERY_MS });
  client.on('error', () => undefined);
  try {
    await client.connect();
    const deadline = Date.now() + RECOVERY_MS;
    while (await isRecovering(client)) {
      if (Date.now() > deadline) throw new Error('PostgreSQL did not read the archive in time.');
      await delay(POLL_MS);
    }
    const { rows } = await client.query<{ at: Date | null }>(
      'select pg_last_xact_replay_timestamp() as at',
    );
    await backUpLocked(client, { cluster, backups });
    return rows[0]?.at ?? undefined;
  } finally {
    await client.end().catch(() => undefined);
  }
}

async function isRecovering(client: pg.Client): Promise<boolean> {
  const { rows } = await client.query<{ is: boolean }>('select pg_is_in_recovery() as is');
  return rows[0]?.is === true;
}

/** The last fatal error that was logged since, other than those of clients that come while the server starts or stops. */
function reasonIn(log: string, since: number): string | undefined {
  // A log that has grown too large was emptied at the start.
  const fatal = log
    .slice(log.length < since ? 0 : since)
    .split('\n')
    .findLast((line) => line.includes('FATAL:') && !/database system is|terminating/.test(line));
  return fatal?.replace(/^.*FATAL:\s*/, '');
}
