import { retry, type Slots } from '@svc/service-kit/concurrency';
import type { ChunkStorage } from '../chunks/chunk-store.ts';
import { mayPass } from '../control-plane/control-plane-transport.ts';
import type { ObjectTransfer } from '../control-plane/object-transfer.ts';
import type { WorkspaceApi, WorkspaceOwner } from '../control-plane/workspace-api.ts';

const ATTEMPTS = 3;

/** What the workspaces of a worker share. */
export interface WorkspaceDeps {
  readonly api: Pick<WorkspaceApi, 'entries' | 'objects' | 'stage' | 'commit'>;
  readonly chunks: ChunkStorage<WorkspaceOwner>;
  readonly objects: Pick<ObjectTransfer, 'getRange'>;
  /** Bounds the loads and the flushes that run at once, and so the memory that they need. */
  readonly slots: { readonly loads: Slots; readonly flushes: Slots };
}

/** Repeats a call to the control plane after brief failures. */
export function callControlPlane<T>(call: () => Promise<T>, signal: AbortSignal): Promise<T> {
  return retry(call, { attempts: ATTEMPTS, signal, isTransient: mayPass });
}
