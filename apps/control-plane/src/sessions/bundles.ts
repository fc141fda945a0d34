import { type ErrorCode, fitsEnvironment, LLM_API_KEY_KEY, ServiceError } from '@svc/contract';
import { isBlankKey } from '../agents/blank-key.ts';
import type { SessionSecrets } from '../agents/stored-secrets.ts';
import { environmentIn, mergeBundles } from '../agents/stored-secrets.ts';
import { rejectField } from '../reject-field.ts';
import type { SecretBundles } from '../secrets/secret-bundles.ts';

/** The secret bundles of a session, and their merged values. */
export interface SessionBundles {
  readonly bundles: SessionSecrets['bundles'];
  readonly values: ReadonlyMap<string, string>;
}

/**
 * Opens the bundles that a session names. A bundle that does not exist fails with the code `missing`.
 * @throws ServiceError `missing`, `secret_key_collision`, `llm_api_key_missing`, `secrets_too_large`
 */
export async function openSessionBundles(
  secretBundles: Pick<SecretBundles, 'reveal'>,
  tenantId: string,
  names: readonly string[],
  missing: Extract<ErrorCode, 'bundle_not_found' | 'secret_bundle_not_found_at_resume'>,
): Promise<SessionBundles> {
  const revealed = await secretBundles.reveal(tenantId, names);
  const bundles = names.map((name, index) => {
    const values = revealed.get(name);
    if (values === undefined) {
      throw new ServiceError(missing, undefined, {
        errors: [{ path: `/secrets/${index}`, message: 'there is no such bundle' }],
      });
    }
    const plain = Object.entries(values).map(([key, secret]) => [key, secret.reveal()]);
    return [name, Object.fromEntries(plain) as Record<string, string>] as const;
  });
  checkCollisions(bundles);
  const values = mergeBundles(bundles);
  if (isBlankKey(values.get(LLM_API_KEY_KEY) ?? '')) rejectField('llm_api_key_missing', '/secrets');
  if (!fitsEnvironment(environmentIn(values))) rejectField('secrets_too_large', '/secrets');
  return { bundles, values };
}

function checkCollisions(bundles: SessionSecrets['bundles']): void {
  const owners = new Map<string, string>();
  for (const [name, values] of bundles) {
    for (const key of Object.keys(values)) {
      const owner = owners.get(key);
      if (owner !== undefined) {
        rejectField('secret_key_collision', '/secrets', `${owner} and ${name} both hold ${key}`);
      }
      owners.set(key, name);
    }
  }
}
