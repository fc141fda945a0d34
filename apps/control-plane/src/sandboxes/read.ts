import type { SandboxRecord } from '@svc/contract';
import type { Store } from '@svc/store';
import type { Caller } from '../auth/caller.ts';
import { findSandbox } from './find.ts';
import { toRecord } from './record.ts';

/** Reads one sandbox from the ledger, which heartbeats and events keep current. */
export class SandboxReader {
  readonly #store: Pick<Store, 'sandboxes'>;

  constructor(store: Pick<Store, 'sandboxes'>) {
    this.#store = store;
  }

  /** @throws ServiceError `sandbox_not_found` */
  async read(caller: Caller, vmId: string): Promise<SandboxRecord> {
    return toRecord(await findSandbox(this.#store, caller, vmId));
  }
}
