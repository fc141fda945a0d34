import { type Kysely, sql } from 'kysely';
import { ago, removeBatch } from '../remove-batch.ts';
import type { Schema } from '../schema.ts';

/** A runtime host as its operator sees it. */
export interface ListedRuntimeHost {
  /** What its operator knows it by. */
  readonly name: string;
  /** How long it has been silent, in seconds of the database's clock. One that ends in order is not listed. */
  readonly silent_seconds: number;
}

/** The runtime hosts that are alive. Nothing but their operator depends on it. */
export class RuntimeHostRepository {
  readonly #db: Kysely<Schema>;

  constructor(db: Kysely<Schema>) {
    this.#db = db;
  }

  /** Notes that a runtime host is alive. */
  async beat(id: string, name: string): Promise<void> {
    await this.#db
      .insertInto('runtime_hosts')
      .values({ runtime_host_id: id, name })
      .onConflict((conflict) =>
        conflict.column('runtime_host_id').doUpdateSet({ name, heartbeat_at: sql`now()` }),
      )
      .execute();
  }

  /** Notes that a runtime host has ended. */
  async leave(id: string): Promise<void> {
    await this.#db.deleteFrom('runtime_hosts').where('runtime_host_id', '=', id).execute();
  }

  /** Those that are alive, and those that ended without saying so a short while ago. */
  list(): Promise<ListedRuntimeHost[]> {
    return this.#db
      .selectFrom('runtime_hosts')
      .select([
        'name',
        sql<number>`extract(epoch from now() - heartbeat_at)::float8`.as('silent_seconds'),
      ])
      .orderBy('name')
      .execute();
  }

  /** Removes up to `limit` that have been silent for this long, and returns their number. */
  removeSilent(seconds: number, limit: number): Promise<number> {
    return removeBatch(this.#db, 'runtime_hosts', sql`heartbeat_at < ${ago(seconds)}`, limit);
  }
}
