import pg from 'pg';
import { expect } from 'vitest';
import type { Harness } from './harness.ts';

/** What happens while a transaction holds a lock. */
interface Steps<T> {
  /** The statement that takes the lock. */
  readonly lock: string;
  /** Begins what has to wait for the lock. */
  readonly begin: () => Promise<T>;
  /** Once something waits: the last statement of the transaction, or what others do before it ends. */
  readonly meanwhile: string | (() => Promise<unknown>);
}

/** Runs something that meets a lock half way, and the transaction that holds it. Returns what it settles with. */
export async function whileLocked<T>(
  { postgres, sql }: Pick<Harness, 'postgres' | 'sql'>,
  { lock, begin, meanwhile }: Steps<T>,
): Promise<T> {
  const holder = new pg.Client({ connectionString: postgres.url });
  await holder.connect();
  try {
    await holder.query('begin');
    await holder.query(lock);
    const outcome = begin();
    const waiting = async () => {
      const { rowCount } = await sql.query(
        `select from pg_stat_activity
         where datname = current_database() and wait_event_type = 'Lock'`,
      );
      return rowCount;
    };
    await expect.poll(waiting).toBeGreaterThan(0);
    await (typeof meanwhile === 'string' ? holder.query(meanwhile) : meanwhile());
    await holder.query('commit');
    return await outcome;
  } finally {
    await holder.end();
  }
}
