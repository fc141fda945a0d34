import { isId, ServiceError } from '@svc/contract';
import type { Store } from '@svc/store';

/** A sandbox that has ended may still be flushed for this long. */
const ENDED_SECONDS = 3_600;

/** The workspace of a sandbox, as the sandbox's worker names it. */
export interface MountRequest {
  readonly workerId: string;
  readonly vmId: string;
  readonly generation: number;
}

/** A workspace that a worker may access. */
export interface Mount {
  readonly tenantId: string;
  readonly workspaceId: string;
}

/**
 * Finds the workspace of a worker's sandbox, and makes it if there is none.
 * @throws ServiceError `sandbox_not_found`, `stale_generation`, `workspace_quota_exceeded`
 */
export async function findMount(
  { workspaces }: Pick<Store, 'workspaces'>,
  { workerId, vmId, generation }: MountRequest,
): Promise<Mount> {
  const mounted = isId('sandbox', vmId)
    ? await workspaces.findMounted(workerId, vmId, ENDED_SECONDS)
    : undefined;
  if (mounted === undefined) throw new ServiceError('sandbox_not_found');
  if (mounted.generation !== generation) throw new ServiceError('stale_generation');
  const workspaceId = await workspaces.open(mounted);
  if (workspaceId === undefined) throw new ServiceError('workspace_quota_exceeded');
  return { tenantId: mounted.tenantId, workspaceId };
}
