import { AsyncLocalStorage } from 'node:async_hooks';

/**
 * On whose behalf statements run. Owners take turns for the connections of their pool, so that nobody's statements wait for
 * the backlog of another.
 */
export interface StatementOwner {
  /** `service` for requests of workers and the work of the service itself, `customers` for all others. */
  pool: 'customers' | 'service';
  /** Statements with the same key share turns: those of one tenant, one worker or one network. */
  key: string;
}

const owners = new AsyncLocalStorage<StatementOwner>();
const SERVICE: StatementOwner = { pool: 'service', key: '' };

/** Runs `task`, and everything that it starts, on behalf of `owner`, whose fields may change meanwhile. */
export function onBehalfOf<T>(owner: StatementOwner, task: () => T): T {
  return owners.run(owner, task);
}

/** The owner of statements that run now; the service itself outside of {@link onBehalfOf}. */
export function statementOwner(): StatementOwner {
  return owners.getStore() ?? SERVICE;
}
