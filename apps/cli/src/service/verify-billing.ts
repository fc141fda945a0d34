import { loadServiceConfig } from '@svc/config';
import { type BillingCheck, verifyBilling } from '@svc/store';
import { withDatabase } from './operator-database.ts';

/**
 * Checks the money in the database of the configured service, whether or not it is running.
 * @throws CliError `no_database`
 */
export async function verifyStoredBilling(): Promise<readonly BillingCheck[]> {
  return withDatabase(loadServiceConfig(), (url) => verifyBilling(url));
}
