import { Kysely, PostgresDialect, type PostgresPool } from 'kysely';
import { type Deadlines, openPool, openPools, type PoolListener } from './pool.ts';
import type { Schema } from './schema.ts';

/** Enough for one statement of each kind of look-up, and for the keys that sign account tokens. */
const LOOKUP_CONNECTIONS = 4;
/** For the short life of a command. */
const COMMAND_CONNECTIONS = 2;

/** Opens connections for one command, each made when it is needed. */
export function connect(url: string, deadlines: Deadlines): Kysely<Schema> {
  return over(openPool('service', url, deadlines, { connections: COMMAND_CONNECTIONS }));
}

/** Opens the connections of a control plane for the statements of requests, each made when it is needed. */
export function connectForRequests(
  url: string,
  deadlines: Deadlines,
  listener: PoolListener,
): Kysely<Schema> {
  return over(openPools(url, deadlines, listener));
}

/** Opens connections for authentication and for look-ups that serve many requests with one statement, whose text never varies. */
export function connectForLookups(
  url: string,
  deadlines: Deadlines,
  listener: PoolListener,
): Kysely<Schema> {
  const size = { connections: LOOKUP_CONNECTIONS, isPrepared: true };
  return over(openPool('lookups', url, deadlines, size, listener));
}

function over(pool: PostgresPool): Kysely<Schema> {
  return new Kysely<Schema>({ dialect: new PostgresDialect({ pool }) });
}
