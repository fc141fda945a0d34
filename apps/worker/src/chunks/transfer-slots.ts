import { Slots } from '@svc/service-kit/concurrency';

/** Saves of one kind that run at once on this worker. Each needs up to 30 MiB. */
const SAVES_AT_ONCE = 4;
/** Loads of workspaces that run at once on this worker, and flushes. Each needs up to 60 MiB. */
const LOADS_AT_ONCE = 4;
const FLUSHES_AT_ONCE = 4;

/**
 * Commits of large turns that run at once on this worker. Each needs up to 140 MiB. A control plane reads two of a worker at a
 * time.
 */
const LARGE_COMMITS_AT_ONCE = 3;

/** The transfers between guests and the object store that run at once on a worker. */
export interface TransferSlots {
  readonly sessionSaves: Slots;
  readonly largeCommits: Slots;
  readonly workspaceSaves: Slots;
  readonly workspaceLoads: Slots;
  readonly workspaceFlushes: Slots;
}

/**
 * Bounds the transfers, and so the memory that they need. Tenants take turns. A guest sends as slowly as it likes, and has as
 * much as its tenant likes, so no tenant has all slots of a kind, and several together do not keep them: a transfer lends its
 * slot while it waits for its guest, and a long load between two of its steps.
 */
export function transferSlots(): TransferSlots {
  return {
    sessionSaves: Slots.shared(SAVES_AT_ONCE),
    largeCommits: Slots.shared(LARGE_COMMITS_AT_ONCE),
    workspaceSaves: Slots.shared(SAVES_AT_ONCE),
    workspaceLoads: Slots.shared(LOADS_AT_ONCE),
    workspaceFlushes: Slots.shared(FLUSHES_AT_ONCE),
  };
}
