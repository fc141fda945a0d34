import { type Kysely, sql, type Transaction } from 'kysely';
import { ago, removeBatch } from '../remove-batch.ts';
import type { Schema, SecretBundleRow } from '../schema.ts';

/** A notice that a session's bundle was rotated, claimed for delivery to the session's worker. */
export interface ConfigUpdateRow {
  readonly vm_id: string;
  readonly worker_id: string;
  readonly bundle: string;
  readonly version: number;
  readonly keys: string[];
  /** The number of attempts to deliver it, including the one that begins now. */
  readonly attempts: number;
}

type Notice = Pick<ConfigUpdateRow, 'vm_id' | 'bundle' | 'version'>;

/**
 * Adds a notice for each running session that uses the bundle, in the transaction that rotates it. Replaces the notice
 * of an earlier rotation, so that a session has at most one for each bundle. Locks the rows in the order of their ids.
 */
export async function announce(
  transaction: Transaction<Schema>,
  bundle: Pick<SecretBundleRow, 'tenant_id' | 'name' | 'version' | 'key_names'>,
  expirySeconds: number,
): Promise<void> {
  await sql`
    insert into config_updates (vm_id, bundle, version, keys, expires_at)
    select vm_id, ${bundle.name}, ${bundle.version}::int, ${bundle.key_names}::text[],
      now() + make_interval(secs => ${expirySeconds})
    from sessions join sandboxes using (vm_id)
    where sessions.tenant_id = ${bundle.tenant_id} and status = 'active'
      and ${bundle.name} = any(secrets) and sandboxes.state <> 'destroyed'
    order by vm_id
    on conflict (vm_id, bundle) do update set version = excluded.version, keys = excluded.keys,
      expires_at = excluded.expires_at, attempts = 0, due_at = now(), outcome = null, ended_at = null`.execute(
    transaction,
  );
}

/** Notices of rotated bundles for the workers of running sessions, which any control plane delivers. */
export class ConfigUpdateRepository {
  readonly #db: Kysely<Schema>;

  constructor(db: Kysely<Schema>) {
    this.#db = db;
  }

  /** Claims up to `limit` notices that are due, oldest first. Nobody else gets them for `seconds`. */
  async claim(limit: number, seconds: number): Promise<ConfigUpdateRow[]> {
    const { rows } = await sql<ConfigUpdateRow>`
      with due as (
        select vm_id, bundle, worker_id from config_updates join sandboxes using (vm_id)
        where outcome is null and due_at <= now() and expires_at > now() and state <> 'destroyed'
        order by due_at limit ${limit}
        for no key update of config_updates skip locked
      )
      update config_updates set attempts = attempts + 1,
        due_at = now() + make_interval(secs => ${seconds})
      from due where config_updates.vm_id = due.vm_id and config_updates.bundle = due.bundle
      returning config_updates.vm_id, worker_id, config_updates.bundle, version, keys, attempts`.execute(
      this.#db,
    );
    return rows;
  }

  /** Records a delivery. A notice that a later rotation has replaced stays due. */
  async noteDelivered({ vm_id: vmId, bundle, version }: Notice): Promise<void> {
    await sql`
      update config_updates set outcome = 'delivered', ended_at = now()
      where vm_id = ${vmId} and bundle = ${bundle} and version = ${version}
        and outcome is null`.execute(this.#db);
  }

  /** Gives a claimed notice back, due again in `seconds`. */
  async postpone({ vm_id: vmId, bundle, version }: Notice, seconds: number): Promise<void> {
    await sql`
      update config_updates set due_at = now() + make_interval(secs => ${seconds})
      where vm_id = ${vmId} and bundle = ${bundle} and version = ${version}
        and outcome is null`.execute(this.#db);
  }

  /** Ends the notices whose sandbox has ended or whose time is over. Returns the number of the latter. */
  async endStale(): Promise<number> {
    const { rows } = await sql<{ outcome: string }>`
      update config_updates set ended_at = now(),
        outcome = case when state = 'destroyed' then 'ended' else 'expired' end
      from sandboxes where sandboxes.vm_id = config_updates.vm_id and outcome is null
        and (state = 'destroyed' or expires_at <= now())
      returning outcome`.execute(this.#db);
    return rows.filter(({ outcome }) => outcome === 'expired').length;
  }

  /** Removes up to `limit` notices that ended longer ago than this. Returns their number. */
  removeEnded(olderThanSeconds: number, limit: number): Promise<number> {
    const isOld = sql`outcome is not null and ended_at < ${ago(olderThanSeconds)}`;
    return removeBatch(this.#db, 'config_updates', isOld, limit);
  }
}
