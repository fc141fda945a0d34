import { loadServiceConfig } from '@svc/config';
import { type AdjustmentOutcome, adjustBilling } from '@svc/store';
import { withDatabase } from './operator-database.ts';

/**
 * Adds an adjustment to the ledger of the configured service, whether or not it is running. Amounts are in cents.
 * @throws CliError `no_database`
 */
export async function adjustStoredBilling(
  adjustment: Parameters<typeof adjustBilling>[1],
): Promise<AdjustmentOutcome> {
  return withDatabase(loadServiceConfig(), (url) => adjustBilling(url, adjustment));
}
