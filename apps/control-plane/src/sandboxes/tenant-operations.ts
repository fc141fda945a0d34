import { finished } from 'node:stream';
import { ServiceError } from '@svc/contract';
import { KeyedSlots } from '@svc/service-kit/concurrency';
import type { WorkerStream } from '../workers/worker-client.ts';

const RETRY_AFTER_SECONDS = '1';

/**
 * Bounds the operations of a tenant that this control plane runs at the same time. They are counted in memory, because a
 * statement for each command would cost more than many commands do.
 */
export class TenantOperations {
  readonly #slots: KeyedSlots;

  /** @param most for each tenant */
  constructor(most: number) {
    this.#slots = new KeyedSlots(most);
  }

  /** Runs an operation. @throws ServiceError `too_many_operations` */
  async run<T>(tenantId: string, operation: () => Promise<T>): Promise<T> {
    const release = this.#take(tenantId);
    try {
      return await operation();
    } finally {
      release();
    }
  }

  /** Begins an operation that lasts until its stream ends. @throws ServiceError `too_many_operations` */
  async stream(tenantId: string, begin: () => Promise<WorkerStream>): Promise<WorkerStream> {
    const release = this.#take(tenantId);
    try {
      const stream = await begin();
      finished(stream.body, release);
      return stream;
    } catch (error) {
      release();
      throw error;
    }
  }

  #take(tenantId: string): () => void {
    const release = this.#slots.take(tenantId);
    if (release !== undefined) return release;
    throw new ServiceError('too_many_operations', undefined, {
      headers: { 'retry-after': RETRY_AFTER_SECONDS },
    });
  }
}
