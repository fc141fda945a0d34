import { type Kysely, sql } from 'kysely';
import type { AgentSecretsRow, Schema } from '../schema.ts';
import { isCurrentMasterKey } from './master-keys.ts';
import type { MasterKeyChanged, Rewrap, SealedBundle } from './secret-bundles.ts';

/** The stored form of an agent's secrets, sealed like those of a bundle. */
export interface NewAgentSecrets extends Omit<SealedBundle, 'keyNames'> {
  readonly vmId: string;
  readonly tenantId: string;
}

/** The sealed secrets of the agents in live sandboxes. This code cannot open them. */
export class AgentSecretsRepository {
  readonly #db: Kysely<Schema>;

  constructor(db: Kysely<Schema>) {
    this.#db = db;
  }

  /** Stores the secrets of a sandbox and replaces earlier ones. False when the sandbox has ended. */
  async put(secrets: NewAgentSecrets): Promise<boolean | MasterKeyChanged> {
    return this.#db.transaction().execute(async (transaction) => {
      if (!(await isCurrentMasterKey(transaction, secrets.masterKeyId)))
        return 'master_key_changed';
      const { rows } = await sql`
        insert into agent_secrets (vm_id, tenant_id, sealed_values, wrapped_key, master_key_id)
        select vm_id, tenant_id, ${secrets.sealedValues}, ${secrets.wrappedKey}, ${secrets.masterKeyId}
        from sandboxes
        where vm_id = ${secrets.vmId} and tenant_id = ${secrets.tenantId} and state <> 'destroyed'
        for share
        on conflict (vm_id) do update set sealed_values = excluded.sealed_values,
          wrapped_key = excluded.wrapped_key, master_key_id = excluded.master_key_id
        returning 1`.execute(transaction);
      return rows.length === 1;
    });
  }

  /** The secrets of a sandbox. Undefined when it has none or has ended. */
  async find(vmId: string): Promise<AgentSecretsRow | undefined> {
    const { rows } = await sql<AgentSecretsRow>`
      select agent_secrets.* from agent_secrets join sandboxes using (vm_id)
      where vm_id = ${vmId} and state <> 'destroyed'`.execute(this.#db);
    return rows[0];
  }

  /** Removes secrets that were written while their sandbox was ending. */
  async removeOrphans(): Promise<void> {
    await sql`
      delete from agent_secrets using sandboxes
      where sandboxes.vm_id = agent_secrets.vm_id and sandboxes.state = 'destroyed'`.execute(
      this.#db,
    );
  }

  /** The number of agents with secrets, and how many of their data keys are wrapped by other master keys. */
  async countWrapped(masterKeyId: string): Promise<{ total: number; others: number }> {
    const { rows } = await sql<{ total: number; others: number }>`
      select count(*)::int as total,
        (count(*) filter (where master_key_id <> ${masterKeyId}))::int as others
      from agent_secrets`.execute(this.#db);
    return rows[0] ?? { total: 0, others: 0 };
  }

  /** Rewraps up to `limit` data keys in one transaction and returns their number. The values do not change. */
  async rewrap(
    masterKeyId: string,
    limit: number,
    rewrap: Rewrap<AgentSecretsRow>,
  ): Promise<number> {
    return this.#db.transaction().execute(async (transaction) => {
      const rows = await transaction
        .selectFrom('agent_secrets')
        .selectAll()
        .where('master_key_id', '<>', masterKeyId)
        .orderBy('vm_id')
        .limit(limit)
        .forNoKeyUpdate()
        .execute();
      for (const row of rows) {
        await transaction
          .updateTable('agent_secrets')
          .set({ wrapped_key: rewrap(row), master_key_id: masterKeyId })
          .where('vm_id', '=', row.vm_id)
          .execute();
      }
      return rows.length;
    });
  }
}
