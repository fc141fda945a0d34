import { type Kysely, sql } from 'kysely';
import { requireCompatible } from '../contraction.ts';
import { MIGRATIONS } from '../migrations/index.ts';
import { ago, removeBatch } from '../remove-batch.ts';
import type { Schema } from '../schema.ts';

/** A control plane as its operator sees it. */
export interface ListedControlPlane {
  readonly control_plane_id: string;
  /** The names of the migrations that its version knows. */
  readonly knows: readonly string[];
  /** How long it has been silent, in seconds of the database's clock. One that ends in order is not listed. */
  readonly silent_seconds: number;
}

/** The control planes that are alive, with the migrations that each knows. */
export class ControlPlaneRepository {
  readonly #db: Kysely<Schema>;
  readonly #known: readonly string[];

  constructor(db: Kysely<Schema>, known: readonly string[] = Object.keys(MIGRATIONS)) {
    this.#db = db;
    this.#known = known;
  }

  /**
   * Notes that a control plane is alive: for the next 30 seconds, nothing is taken out of the schema that it needs.
   * @throws IncompatibleSchemaError when something has been taken out already
   */
  async beat(id: string): Promise<void> {
    await this.#db.transaction().execute(async (trx) => {
      await requireCompatible(trx, this.#known);
      await trx
        .insertInto('control_planes')
        .values({ control_plane_id: id, knows: [...this.#known] })
        .onConflict((conflict) =>
          conflict.column('control_plane_id').doUpdateSet({ heartbeat_at: sql`now()` }),
        )
        .execute();
    });
  }

  /** Those that are alive, and those that ended without saying so a short while ago. */
  list(): Promise<ListedControlPlane[]> {
    return this.#db
      .selectFrom('control_planes')
      .select([
        'control_plane_id',
        'knows',
        sql<number>`extract(epoch from now() - heartbeat_at)::float8`.as('silent_seconds'),
      ])
      .orderBy('control_plane_id')
      .execute();
  }

  /** Notes that a control plane has ended. */
  async leave(id: string): Promise<void> {
    await this.#db.deleteFrom('control_planes').where('control_plane_id', '=', id).execute();
  }

  /** Removes up to `limit` that have been silent for this long, and returns their number. */
  removeSilent(seconds: number, limit: number): Promise<number> {
    return removeBatch(this.#db, 'control_planes', sql`heartbeat_at < ${ago(seconds)}`, limit);
  }
}
