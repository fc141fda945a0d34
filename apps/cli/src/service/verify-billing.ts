import { loadServiceConfig } from '@svc/config';
import { type BillingCheck, verifyBilling } from '@svc/store';
import { databaseUrl } from './operator-database.ts';

/**
 * Checks the money in the database of the configured service, whether or not it is running.
 * @throws CliError `no_database`
 */
export async function verifyStoredBilling(): Promise<readonly BillingCheck[]> {
  await using cleanUp = new AsyncDisposableStack();
  const url = await databaseUrl(loadServiceConfig(), cleanUp);
  // The database is needed until the checks have ended.
  return await verifyBilling(url);
}
