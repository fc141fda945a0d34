/** Deadlines in milliseconds. Each later one is a fallback for the one before it. */
export interface StatementDeadlines {
  readonly lock: number;
  readonly statement: number;
  readonly query: number;
}

/** How a transaction begins, in the ways that Kysely begins one. */
const BEGIN = /^(?:begin|start transaction)\b/i;

/**
 * Whether the URL says, with `pgbouncer=true`, that it is that of PgBouncer in transaction mode. There, each transaction
 * may have another session of the server, so settings must not be those of a session.
 */
export function isPooled(url: string): boolean {
  const query = url.slice(url.indexOf('?') + 1);
  return url.includes('?') && new URLSearchParams(query).get('pgbouncer') === 'true';
}

/** The deadlines that the server keeps, as settings of a session. */
export function serverDeadlines({ lock, statement, query }: StatementDeadlines) {
  return {
    lock_timeout: lock,
    statement_timeout: statement,
    idle_in_transaction_session_timeout: query,
  };
}

/**
 * Rewrites the statement that begins a transaction so that the server keeps the deadlines during it. For a statement
 * outside of transactions, it keeps those of the role.
 */
export function beginWithin(deadlines: StatementDeadlines): (text: string) => string {
  const settings = Object.entries(serverDeadlines(deadlines))
    .map(([name, ms]) => `; set local ${name} = ${ms}`)
    .join('');
  return (text) => (BEGIN.test(text) ? text + settings : text);
}
