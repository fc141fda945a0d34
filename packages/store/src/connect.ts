import { Kysely, PostgresDialect, type PostgresPool } from 'kysely';
import { type Deadlines, openPool, openPools, type PoolListener } from './pool.ts';
import type { Schema } from './schema.ts';

/** Enough for one statement of each kind of look-up, and for the keys that sign account tokens. */
const LOOKUP_CONNECTIONS = 4;
/** For the short life of a command. */
const COMMAND_CONNECTIONS = 2;

/** Opens connections for one command, each made when it is needed. */
export function connect(url: string, deadlines: Deadlines): Kysely<Schema> {
  return over(openPool('service', url, deadlines, { connections: COMMAND_CONNECTIONS }).plain);
}

/** The connections of a control plane. Destroying `db` ends both. */
export interface RequestConnections {
  readonly db: Kysely<Schema>;
  /** For statements that run often and whose texts are few and fixed: the server plans each once for a connection. */
  readonly prepared: Kysely<Schema>;
}

/** Opens the connections of a control plane for the statements of requests, each made when it is needed. */
export function connectForRequests(
  url: string,
  deadlines: Deadlines,
  listener: PoolListener,
): RequestConnections {
  const { plain, prepared } = openPools(url, deadlines, listener);
  return { db: over(plain), prepared: over(prepared) };
}

/**
 * Opens connections for authentication and for look-ups that serve many requests with one statement, which is prepared as those
 * of {@link RequestConnections}.
 */
export function connectForLookups(
  url: string,
  deadlines: Deadlines,
  listener: PoolListener,
): Kysely<Schema> {
  const size = { connections: LOOKUP_CONNECTIONS };
  return over(openPool('lookups', url, deadlines, size, listener).prepared);
}

function over(pool: PostgresPool): Kysely<Schema> {
  return new Kysely<Schema>({ dialect: new PostgresDialect({ pool }) });
}
