import { randomUUID } from 'node:crypto';
import type { Kysely } from 'kysely';
import type { Schema } from '../src/schema.ts';

/** Adds an active session of a tenant, without the sandbox that it names, and returns its id. */
export async function insertSession(
  db: Kysely<Schema>,
  tenantId: string,
  sessionId: string = randomUUID(),
): Promise<string> {
  await db
    .insertInto('sessions')
    .values({
      session_id: sessionId,
      tenant_id: tenantId,
      status: 'active',
      vm_id: 'vm',
      agent: 'deictic',
      app_id: 'a',
      set_id: 's',
      template: 'standard',
      vendor: 'openai',
      model: 'm',
      secrets: [],
      user_id: 'u',
      expires_at: new Date(),
    })
    .execute();
  return sessionId;
}
