import type { ComponentKind } from '@svc/contract';
import { type Kysely, sql } from 'kysely';
import { type BatchLoad, batchLoad } from '../batch-load.ts';
import { ago, removeBatch } from '../remove-batch.ts';
import type { Schema } from '../schema.ts';
import { REMOVED } from './fleet.ts';

/** The key of a component. */
export interface ComponentKey {
  readonly kind: ComponentKind;
  readonly keyId: string;
  /** `x` of its Ed25519 public key as a JWK. */
  readonly publicKey: string;
}

/** A component as its operator sees it. */
export interface ListedComponent {
  readonly component_id: string;
  readonly kind: ComponentKind;
  readonly key_id: string;
  readonly enrolled_at: Date;
  readonly revoked_at: Date | null;
}

/** A component that enrols. */
export interface NewComponent extends ComponentKey {
  readonly componentId: string;
  readonly token: {
    readonly tokenId: string;
    /** How many components may enrol with it. */
    readonly uses: number;
    readonly expiresAt: Date;
    /** Whether it was made for this id, whose key it may replace. */
    readonly isForId: boolean;
  };
}

/** Undone when thrown in a transaction. */
class Refused extends Error {
  readonly reason: EnrolmentRefusal;

  constructor(reason: EnrolmentRefusal) {
    super(reason);
    this.reason = reason;
  }
}

export type EnrolmentRefusal = 'token_used' | 'id_in_use';

/** The workers and runtime hosts that have enrolled, and their public keys. */
export class ComponentRepository {
  readonly #db: Kysely<Schema>;
  readonly #key: BatchLoad<string, ComponentKey>;

  /** @param lookups connections for authentication */
  constructor(db: Kysely<Schema>, lookups: Kysely<Schema> = db) {
    this.#db = db;
    this.#key = batchLoad((ids) => loadKeys(lookups, ids));
  }

  /**
   * The key of a component that is not revoked. Queries the database on every call, so that a revocation takes effect
   * immediately.
   */
  keyOf(componentId: string): Promise<ComponentKey | undefined> {
    return this.#key(componentId);
  }

  /** Adds a component, or the new key of one. Repeating it changes nothing. Returns why it was refused, if it was. */
  async enrol(component: NewComponent): Promise<EnrolmentRefusal | undefined> {
    const { componentId, kind, keyId, publicKey, token } = component;
    const values = { kind, key_id: keyId, public_key: publicKey };
    try {
      await this.#db.transaction().execute(async (transaction) => {
        const same = await transaction
          .selectFrom('components')
          .select('component_id')
          .where('component_id', '=', componentId)
          .where('kind', '=', kind)
          .where('key_id', '=', keyId)
          .where('revoked_at', 'is', null)
          .executeTakeFirst();
        if (same !== undefined) return;
        const { rows: used } = await sql`
          insert into enrolment_tokens (token_id, uses, expires_at)
          values (${token.tokenId}, 1, ${token.expiresAt})
          on conflict (token_id) do update set uses = enrolment_tokens.uses + 1
          where enrolment_tokens.uses < ${token.uses}
          returning token_id`.execute(transaction);
        if (used.length === 0) throw new Refused('token_used');
        const added = await transaction
          .insertInto('components')
          .values({ component_id: componentId, ...values })
          .onConflict((conflict) =>
            conflict
              .column('component_id')
              .doUpdateSet({
                ...values,
                enrolled_at: sql`now()`,
                used_at: sql`now()`,
                revoked_at: null,
              })
              .where(sql.lit(token.isForId)),
          )
          .returning('component_id')
          .executeTakeFirst();
        if (added === undefined) throw new Refused('id_in_use');
      });
      return undefined;
    } catch (error) {
      if (error instanceof Refused) return error.reason;
      throw error;
    }
  }

  /**
   * Revokes the key of a component at once; it is back when it enrols again. The control planes end the sandboxes of a worker
   * as lost. False when there is no such component, or when it is revoked.
   */
  async revoke(componentId: string, kind: ComponentKind): Promise<boolean> {
    return this.#db.transaction().execute(async (transaction) => {
      const { numUpdatedRows } = await transaction
        .updateTable('components')
        .set({ revoked_at: sql`now()` })
        .where('component_id', '=', componentId)
        .where('kind', '=', kind)
        .where('revoked_at', 'is', null)
        .executeTakeFirst();
      if (numUpdatedRows === 0n) return false;
      if (kind === 'worker') {
        await transaction
          .updateTable('workers')
          .set(REMOVED)
          .where('worker_id', '=', componentId)
          .execute();
      }
      return true;
    });
  }

  /** The components of one kind, by id. */
  async list(kind: ComponentKind): Promise<ListedComponent[]> {
    return this.#db
      .selectFrom('components')
      .select(['component_id', 'kind', 'key_id', 'enrolled_at', 'revoked_at'])
      .where('kind', '=', kind)
      .orderBy('component_id')
      .execute();
  }

  /** Removes up to `limit` components that have not called for this long, and returns their number. */
  removeUnused(seconds: number, limit: number): Promise<number> {
    return removeBatch(this.#db, 'components', sql`used_at < ${ago(seconds)}`, limit);
  }

  /** Removes up to `limit` tokens that expired this many seconds ago, and returns their number. */
  removeExpiredTokens(seconds: number, limit: number): Promise<number> {
    return removeBatch(this.#db, 'enrolment_tokens', sql`expires_at < ${ago(seconds)}`, limit);
  }
}

interface KeyRow {
  readonly component_id: string;
  readonly kind: ComponentKind;
  readonly key_id: string;
  readonly public_key: string;
}

async function loadKeys(
  db: Kysely<Schema>,
  ids: readonly string[],
): Promise<(ComponentKey | undefined)[]> {
  const { rows } = await sql<KeyRow>`
    with found as (
      select component_id, kind, key_id, public_key, used_at from components
      where component_id = any(${[...ids]}::text[]) and revoked_at is null
    ), used as (
      update components set used_at = now() where component_id in (
        select component_id from components
        where component_id in (
          select component_id from found where used_at < now() - interval '1 hour')
        for no key update skip locked)
    )
    select * from found`.execute(db);
  const keys = new Map(
    rows.map(({ component_id, kind, key_id, public_key }) => [
      component_id,
      { kind, keyId: key_id, publicKey: public_key },
    ]),
  );
  return ids.map((id) => keys.get(id));
}
