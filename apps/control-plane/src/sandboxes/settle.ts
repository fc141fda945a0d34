import type { SandboxRow, Store } from '@svc/store';

/**
 * Settles a creation that was interrupted or failed: ends it if the sandbox has not started, so that it can no longer
 * start. Returns the sandbox if it has started, even if it has ended since. The next heartbeat of its worker destroys
 * a VM that is left over.
 */
export async function settleCreation(
  sandboxes: Store['sandboxes'],
  vmId: string,
): Promise<SandboxRow | undefined> {
  await sandboxes.forget(vmId);
  // One whose deletion was requested stays on record.
  await sandboxes.end({ vmId, reason: 'deleted', unstarted: true });
  const row = await sandboxes.findAny(vmId);
  return row?.state === 'destroyed' && row.running_at === null ? undefined : row;
}
