import { randomUUID } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { SvcClient } from '@svc/sdk';
import type { Access } from './access.ts';

/** An account and a client with its key. */
export interface Account {
  readonly tenantId: string;
  readonly email: string;
  readonly apiKey: string;
  /** Short-lived account JWT. */
  readonly token: string;
  readonly client: SvcClient;
}

/** Signs up over the public API with the code from the outbox. */
export async function signUp(
  access: Access,
  email = `${randomUUID()}@example.com`,
): Promise<Account> {
  const visitor = access.client();
  await visitor.tenants.requestCode(email);
  const code = await mailedCode(access.address.dataDir, email);
  const { tenant_id, api_key, token } = await visitor.tenants.verify(email, code);
  await visitor.close();
  return { tenantId: tenant_id, email, apiKey: api_key, token, client: access.client(api_key) };
}

/** The newest code mailed to an address. The message is in the outbox before the request is answered. */
export async function mailedCode(dataDir: string, email: string): Promise<string> {
  const outbox = join(dataDir, 'outbox');
  const names = (await readdir(outbox)).filter((name) => name.endsWith('.eml')).sort();
  for (const name of names.reverse()) {
    const message = await readFile(join(outbox, name), 'utf8');
    const code = /\b(\d{6})\b/.exec(/^Subject: (.*)$/m.exec(message)?.[1] ?? '')?.[1];
    if (code !== undefined && message.includes(email)) return code;
  }
  throw new Error(`no code for ${email} in ${outbox}`);
}
