import { ServiceError } from '@svc/contract';
import type { SeenSandbox, Store } from '@svc/store';
import type { Caller } from '../auth/caller.ts';

/** Finds a sandbox of the caller. @throws ServiceError `sandbox_not_found` */
export async function findSandbox(
  store: Pick<Store, 'sandboxes'>,
  caller: Caller,
  vmId: string,
): Promise<SeenSandbox> {
  // No id contains NUL, and PostgreSQL would reject the whole statement.
  const row = vmId.includes('\0') ? undefined : await store.sandboxes.find(caller.tenantId, vmId);
  if (row === undefined) throw new ServiceError('sandbox_not_found');
  return row;
}
