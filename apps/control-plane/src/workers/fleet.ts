import type { WorkerRow } from '@svc/store';
import type { WorkerAddress } from './worker-address.ts';
import { WorkerApi } from './worker-api.ts';
import type { WorkerClient } from './worker-client.ts';

/** Finds workers and hands out what speaks to them. */
export class Fleet {
  readonly #find: (workerId: string) => Promise<WorkerRow | undefined>;
  readonly #client: WorkerClient;

  constructor(find: (workerId: string) => Promise<WorkerRow | undefined>, client: WorkerClient) {
    this.#find = find;
    this.#client = client;
  }

  /** The worker of this id, at the address it registered last. */
  async worker(workerId: string): Promise<WorkerApi> {
    const worker = await this.#find(workerId);
    // The ledger's foreign key keeps every worker that a sandbox names.
    if (worker === undefined) throw new Error(`No worker ${workerId} in the ledger.`);
    return this.at(worker);
  }

  at(worker: WorkerAddress): WorkerApi {
    return new WorkerApi(this.#client, worker);
  }
}
