import type { PostgresPool, PostgresPoolClient } from 'kysely';
import pg from 'pg';
import { isConnectionError, mapDatabaseError } from './database-errors.ts';

/** Deadlines in milliseconds. Each later one is a fallback for the one before it. */
export interface Deadlines {
  readonly connect: number;
  readonly lock: number;
  readonly statement: number;
  readonly query: number;
}

/** For statements that a request awaits. */
export const REQUEST_DEADLINES: Deadlines = {
  connect: 5_000,
  lock: 8_000,
  statement: 10_000,
  query: 12_000,
};

/** For migrations, which may have to wait for the migrations of another control plane. */
export const MIGRATION_DEADLINES: Deadlines = {
  connect: 5_000,
  lock: 300_000,
  statement: 300_000,
  query: 310_000,
};

const MAX_CONNECTIONS = 16;

/**
 * Opens a pool with a deadline for every wait: for a connection, a lock or a statement. Throws `database_unavailable`
 * when the server cannot be reached, and closes the affected connection, so that the pool recovers when the server is
 * available again.
 */
export function openPool(
  url: string,
  deadlines: Deadlines,
  onIdleError: (error: Error) => void,
): PostgresPool {
  const pool = new pg.Pool({
    connectionString: url,
    max: MAX_CONNECTIONS,
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
  // The pool handles errors of idle connections only. Without this listener, an error on a connection in use would end
  // the process. Its query fails as well, so the error is not lost.
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
