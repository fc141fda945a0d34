import type { PostgresPool, PostgresPoolClient } from 'kysely';
import pg from 'pg';
import { isConnectionError, mapDatabaseError } from './errors.ts';

/** Deadlines in milliseconds: each later one is a backstop for the one before it. */
const DEADLINES = { connect: 5_000, lock: 8_000, statement: 10_000, query: 12_000 } as const;
const MOST_CONNECTIONS = 16;

/**
 * Opens a pool whose every wait ends: for a connection, for a lock, for a statement. Failures to
 * reach the server are thrown as `database_unavailable`, and a connection that met one is dropped,
 * so that the pool heals by itself when the server is back.
 */
export function openPool(url: string, onIdleError: (error: Error) => void): PostgresPool {
  const pool = new pg.Pool({
    connectionString: url,
    max: MOST_CONNECTIONS,
    connectionTimeoutMillis: DEADLINES.connect,
    lock_timeout: DEADLINES.lock,
    statement_timeout: DEADLINES.statement,
    query_timeout: DEADLINES.query,
    idle_in_transaction_session_timeout: DEADLINES.query,
    idleTimeoutMillis: 60_000,
    keepAlive: true,
    application_name: 'svc',
  });
  pool.on('error', onIdleError);
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
