import { ServiceError } from '@svc/contract';
import type { Store } from '@svc/store';

/** Decides whether an account may start sandboxes. */
export interface CreditGate {
  /** @throws ServiceError `credits_exhausted` */
  check(tenantId: string): Promise<void>;
}

/** The gate of an installation: open, unless it enforces credit. */
export function creditGate(
  ledger: Pick<Store['billing'], 'balance'>,
  enforce: boolean,
): CreditGate {
  return {
    async check(tenantId) {
      if (enforce && (await ledger.balance(tenantId)) <= 0) {
        throw new ServiceError('credits_exhausted');
      }
    },
  };
}
