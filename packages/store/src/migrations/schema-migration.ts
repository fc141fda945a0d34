import type { Migration } from 'kysely';

/** The part of a change of the schema that takes something away. */
export interface Contraction {
  /** The migration with which versions came that do without it. A control plane that does not know it still needs it. */
  readonly needs: string;
}

/** An index of a table that may be large. It is not unique: a unique one would bind the version before. */
export interface NewIndex {
  readonly name: string;
  /** What follows `on` in the statement that creates it. */
  readonly on: string;
}

/**
 * A migration. Without `contraction` it expands the schema: the version before, which does not know it, goes on as it did. So it
 * adds tables, and columns that may be left out, and takes nothing away. `up` runs in a transaction of its own, and `indexes`
 * are built after the `up` of all migrations, without keeping anybody from writing to their tables.
 *
 * With `contraction` it runs when no control plane is alive that still needs what it takes away. Until then this version
 * works without it.
 */
export interface SchemaMigration extends Partial<Pick<Migration, 'up'>> {
  readonly indexes?: readonly NewIndex[];
  readonly contraction?: Contraction;
}
