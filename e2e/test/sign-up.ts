import { randomUUID } from 'node:crypto';
import type { SvcClient } from '@svc/sdk';
import { mailedCode } from '@svc/service-driver';

/** An account and a client that uses its API key. */
export interface Account {
  readonly tenantId: string;
  readonly email: string;
  readonly apiKey: string;
  /** Short-lived account JWT. */
  readonly token: string;
  readonly client: SvcClient;
}

/** Signs up through the public API, with the code from the outbox in `dataDir`. */
export async function signUp(
  dataDir: string,
  createClient: (apiKey?: string) => SvcClient,
  email = `${randomUUID()}@example.com`,
): Promise<Account> {
  const visitor = createClient();
  await visitor.tenants.requestCode(email);
  const code = await mailedCode(dataDir, email);
  const { tenant_id, api_key, token } = await visitor.tenants.verify(email, code);
  await visitor.close();
  return { tenantId: tenant_id, email, apiKey: api_key, token, client: createClient(api_key) };
}
