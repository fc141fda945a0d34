import { connect } from './connect.ts';
import { COMMAND_DEADLINES } from './pool.ts';
import { type BillingCheck, verify } from './repositories/billing/verify.ts';

/**
 * Checks the money in a database, which the service may be using. It reads only, and may take minutes.
 * @throws ServiceError `database_unavailable`
 */
export async function verifyBilling(url: string): Promise<BillingCheck[]> {
  const db = connect(url, COMMAND_DEADLINES);
  try {
    return await verify(db);
  } finally {
    await db.destroy();
  }
}
