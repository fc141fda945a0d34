import { type Budget, Charge, KeyedBudget } from '@svc/service-kit/concurrency';

const MIB = 1024 * 1024;
const ACCOUNT_BYTES = 128 * MIB;
/** Enough for the longest line of a guest. */
const OWN_BYTES = 16 * MIB;
const SHARED_BYTES = 512 * MIB;
/** What each buffer of a link may hold in any case, so that short messages never wait for other sandboxes of the account. */
export const BUFFER_BYTES = MIB;

/** The budgets of all accounts for what the links to their guests hold on one worker, in bytes. */
export function linkBudgets(accountBytes = ACCOUNT_BYTES): KeyedBudget {
  return new KeyedBudget(accountBytes, { own: OWN_BYTES, shared: SHARED_BYTES });
}

/** The charge for one buffer of a link. `held`: the budget of its account. */
export function bufferCharge(held: Budget): Charge {
  return new Charge(held, BUFFER_BYTES);
}
