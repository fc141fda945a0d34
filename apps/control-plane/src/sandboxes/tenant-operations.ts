import { finished } from 'node:stream';
import { ServiceError } from '@svc/contract';
import { KeyedSlots, type Sharing } from '@svc/service-kit/concurrency';
import type { WorkerStream } from '../workers/worker-client.ts';

/**
 * The operations on one worker. The sum is bounded, since a tenant has operations only on workers that have a sandbox of its
 * own.
 */
const ON_WORKER: Sharing = { own: 8, shared: 1024 };

/** The tenant of an operation, and its worker. */
export interface OperationPlace {
  readonly tenantId: string;
  /** Undefined when the operation keeps no worker busy for long. */
  readonly workerId: string | undefined;
}

/**
 * Bounds the operations of a tenant that this control plane runs at the same time, in all and on each worker. They are
 * counted in memory, because a statement for each command would cost more than many commands do.
 */
export class TenantOperations {
  readonly #most: number;
  readonly #tenants: KeyedSlots;
  /** By worker; those that have operations. */
  readonly #onWorkers = new Map<string, KeyedSlots>();

  /** @param most for each tenant */
  constructor(most: number) {
    this.#most = most;
    this.#tenants = new KeyedSlots(most);
  }

  /** Runs an operation. @throws ServiceError `too_many_operations` */
  async run<T>(place: OperationPlace, operation: () => Promise<T>): Promise<T> {
    const release = this.#take(place);
    try {
      return await operation();
    } finally {
      release();
    }
  }

  /** Begins an operation that lasts until its stream ends. @throws ServiceError `too_many_operations` */
  async stream(place: OperationPlace, begin: () => Promise<WorkerStream>): Promise<WorkerStream> {
    const release = this.#take(place);
    try {
      const stream = await begin();
      finished(stream.body, release);
      return stream;
    } catch (error) {
      release();
      throw error;
    }
  }

  #take({ tenantId, workerId }: OperationPlace): () => void {
    const release = this.#tenants.take(tenantId);
    if (release === undefined) throw tooMany();
    if (workerId === undefined) return release;
    const releaseWorker = this.#takeOnWorker(workerId, tenantId);
    if (releaseWorker === undefined) {
      release();
      throw tooMany(
        'The worker of this sandbox is busy, and your account has its share of it; wait for one of your operations to end, then try again.',
      );
    }
    return () => {
      release();
      releaseWorker();
    };
  }

  #takeOnWorker(workerId: string, tenantId: string): (() => void) | undefined {
    const slots = this.#onWorkers.get(workerId) ?? new KeyedSlots(this.#most, ON_WORKER);
    const release = slots.take(tenantId);
    if (release === undefined) return undefined;
    this.#onWorkers.set(workerId, slots);
    return () => {
      release();
      if (slots.isEmpty) this.#onWorkers.delete(workerId);
    };
  }
}

function tooMany(detail?: string): ServiceError {
  return new ServiceError('too_many_operations', detail);
}
