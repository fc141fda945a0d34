import { KeyedBudget } from '@svc/service-kit/concurrency';

const MIB = 1024 * 1024;
/** Output that this control plane holds for one tenant until its clients have it. */
const TENANT_BYTES = 128 * MIB;
/** The part of it that no other tenant can take. */
const OWN_BYTES = MIB;
/** What all tenants together hold in addition to that. */
const SHARED_BYTES = 1024 * MIB;

/** The memory for the output of commands, by tenant. However many tenants hold what they can, others have their own part. */
export function createOutputBudgets(): KeyedBudget {
  return new KeyedBudget(TENANT_BYTES, { own: OWN_BYTES, shared: SHARED_BYTES });
}
