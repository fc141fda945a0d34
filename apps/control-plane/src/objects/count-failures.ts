import { isObjectStoreError, type ObjectStore } from '@svc/object-store';
import { Counter, type Registry } from '@svc/service-kit';

/**
 * The same store, which counts the operations that failed because it could not be reached or failed itself. The body of
 * an object that breaks off later is not counted.
 */
export function countObjectFailures(store: ObjectStore, registry: Registry): ObjectStore {
  const failures = new Counter({
    name: 'svc_object_store_failures_total',
    help: 'Operations of the object store that failed, by operation.',
    labelNames: ['operation'],
    registers: [registry],
  });
  return new Proxy(store, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== 'function') return member;
      return async (...parameters: unknown[]): Promise<unknown> => {
        try {
          return await member.apply(target, parameters);
        } catch (error) {
          const isFailure = isObjectStoreError(error, 'object_store_unavailable');
          if (isFailure) failures.inc({ operation: String(name) });
          throw error;
        }
      };
    },
  });
}
