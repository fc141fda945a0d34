import type { WorkerRow } from '@svc/store';
import type { WorkerAddress } from './worker-address.ts';
import { WorkerApi } from './worker-api.ts';
import type { WorkerClient } from './worker-client.ts';

/** Looks workers up and hands out their APIs. */
export class Fleet {
  readonly #find: (workerId: string) => Promise<WorkerRow | undefined>;
  readonly #client: WorkerClient;

  constructor(find: (workerId: string) => Promise<WorkerRow | undefined>, client: WorkerClient) {
    this.#find = find;
    this.#client = client;
  }

  /** The API of a worker, at the address that it registered last. */
  async worker(workerId: string): Promise<WorkerApi> {
    const worker = await this.#find(workerId);
    // A foreign key of the ledger keeps the worker of each sandbox.
    if (worker === undefined) throw new Error(`No worker ${workerId} in the ledger.`);
    return this.at(worker);
  }

  at(worker: WorkerAddress): WorkerApi {
    return new WorkerApi(this.#client, worker);
  }
}
