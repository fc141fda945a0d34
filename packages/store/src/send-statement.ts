import { hash } from 'node:crypto';
import pg from 'pg';
import { beginWithin, type StatementDeadlines } from './session-settings.ts';

/** A statement and the values of its parameters. */
export interface Statement {
  readonly text: string;
  readonly values: unknown[];
}

/**
 * Sends a statement on a connection.
 * @param retire called when the connection must be replaced after this use
 */
export type Send = (
  client: pg.ClientBase,
  statement: Statement,
  retire: () => void,
) => Promise<pg.QueryResult>;

export const sendPlain: Send = (client, { text, values }) => client.query(text, values);

/** For PgBouncer: the server keeps the deadlines within transactions. */
export function sendWithin(deadlines: StatementDeadlines): Send {
  const rewrite = beginWithin(deadlines);
  return (client, { text, values }) => client.query(rewrite(text), values);
}

/**
 * Has the server plan a statement once for each connection instead of each time, which takes it several times as long as to run
 * a look-up by key. It keeps every text, so they must be few and fixed. In a transaction, no column of a result may be `*`: the
 * statement could not be sent again.
 */
export const sendPrepared: Send = async (client, { text, values }, retire) => {
  // Those without parameters, such as `begin`, have no plan worth keeping.
  if (values.length === 0) return client.query(text);
  try {
    return await client.query({ name: hash('sha1', text), text, values });
  } catch (error) {
    if (!isOutdatedPlan(error)) throw error;
    // Migrations run while this version serves requests. The server refuses the plan before it runs anything of it.
    retire();
    return client.query(text, values);
  }
};

/**
 * Whether the columns of a result have changed since its statement was prepared. The code of this error has other meanings too, and
 * its message may be in any language, so the function of the server that raised it tells.
 */
function isOutdatedPlan(error: unknown): boolean {
  return (
    error instanceof pg.DatabaseError &&
    error.code === '0A000' &&
    error.routine === 'RevalidateCachedQuery'
  );
}
