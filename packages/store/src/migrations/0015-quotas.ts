import { type Kysely, sql } from 'kysely';

/** Indexes by which the sessions that a tenant keeps and its valid API keys are counted. */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of [SESSIONS, API_KEYS]) await sql.raw(statement).execute(db);
}

const SESSIONS = `
  create index sessions_tenant_kept on sessions (tenant_id) where erased_at is null;`;

const API_KEYS = `
  create index api_keys_tenant_valid on api_keys (tenant_id) where revoked_at is null;`;
