import type { PostgresPool, PostgresPoolClient } from 'kysely';
import pg from 'pg';
import { isConnectionError, mapDatabaseError } from './database-errors.ts';

/** Deadlines in milliseconds: each later one is a backstop for the one before it. */
export interface Deadlines {
  readonly connect: number;
  readonly lock: number;
  readonly statement: number;
  readonly query: number;
}

/** For statements that a request waits for. */
export const REQUEST_DEADLINES: Deadlines = {
  connect: 5_000,
  lock: 8_000,
  statement: 10_000,
  query: 12_000,
};

/** For migrations, which may have to wait for those of another control plane. */
export const MIGRATION_DEADLINES: Deadlines = {
  connect: 5_000,
  lock: 300_000,
  statement: 300_000,
  query: 310_000,
};

const MOST_CONNECTIONS = 16;

/**
 * Opens a pool whose every wait ends: for a connection, for a lock, for a statement. Failures to
 * reach the server are thrown as `database_unavailable`, and a connection that met one is dropped,
 * so that the pool heals by itself when the server is back.
 */
export function openPool(
  url: string,
  deadlines: Deadlines,
  onIdleError: (error: Error) => void,
): PostgresPool {
  const pool = new pg.Pool({
    connectionString: url,
    max: MOST_CONNECTIONS,
    connectionTimeoutMillis: deadlines.connect,
    lock_timeout: deadlines.lock,
    statement_timeout: deadlines.statement,
    query_timeout: deadlines.query,
    idle_in_transaction_session_timeout: deadlines.query,
    idleTimeoutMillis: 60_000,
    keepAlive: true,
    application_name: 'svc',
  });
  pool.on('error', onIdleError);
  // The pool hears a connection only while it is idle. One that is lent out when the server dies fails its
  // query as well, and would without this end the whole process.
  pool.on('connect', (client) => client.on('error', () => undefined));
  return {
    connect: async () => guard(await pool.connect().catch(rethrowMapped)),
    end: () => pool.end(),
  };
}

function guard(client: pg.PoolClient): PostgresPoolClient {
  let broken = false;
  const note = (error: unknown): never => {
    broken ||= isConnectionError(error);
    return rethrowMapped(error);
  };
  const guarded = {
    query: (...parameters: Parameters<pg.PoolClient['query']>) =>
      Promise.resolve(client.query(...parameters)).catch(note),
    release: () => client.release(broken),
  };
  return guarded as unknown as PostgresPoolClient;
}

function rethrowMapped(error: unknown): never {
  throw mapDatabaseError(error);
}
