import { Kysely, PostgresDialect } from 'kysely';
import { type Deadlines, openPool } from './pool.ts';
import type { Schema } from './schema.ts';

/** Opens a pool of connections, each made when it is needed. */
export function connect(
  url: string,
  deadlines: Deadlines,
  onConnectionLost: (error: Error) => void = () => undefined,
): Kysely<Schema> {
  const pool = openPool(url, deadlines, onConnectionLost);
  return new Kysely<Schema>({ dialect: new PostgresDialect({ pool }) });
}
