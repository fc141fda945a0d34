import { ServiceError } from '@svc/contract';
import type { SandboxRow, Store } from '@svc/store';
import type { Caller } from '../auth/caller.ts';

/** Finds a sandbox of the caller. @throws ServiceError `sandbox_not_found` for any other id */
export async function findSandbox(
  store: Pick<Store, 'sandboxes'>,
  caller: Caller,
  vmId: string,
): Promise<SandboxRow> {
  // A NUL cannot be stored, so no id holds one; PostgreSQL would refuse the whole statement.
  const row = vmId.includes('\0') ? undefined : await store.sandboxes.find(caller.tenantId, vmId);
  if (row === undefined) throw new ServiceError('sandbox_not_found');
  return row;
}
