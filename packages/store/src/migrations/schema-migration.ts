import type { Migration } from 'kysely';

/** The part of a change of the schema that takes something away. */
export interface Contraction {
  /** The migration with which versions came that do without it. A control plane that does not know it still needs it. */
  readonly needs: string;
}

/**
 * A migration. Without `contraction` it expands the schema: the version before, which does not know it, goes on as it did. So it
 * adds tables, and columns that may be left out, and takes nothing away.
 *
 * With `contraction` it runs when no control plane is alive that still needs what it takes away. Until then this version
 * works without it.
 */
export interface SchemaMigration extends Migration {
  readonly contraction?: Contraction;
}
