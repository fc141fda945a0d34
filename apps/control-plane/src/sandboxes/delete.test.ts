import { setImmediate } from 'node:timers/promises';
import type { SandboxRow, Store } from '@svc/store';
import { expect, test } from 'vitest';
import type { Fleet } from '../workers/fleet.ts';
import { SandboxDeleter } from './delete.ts';

const row = (vmId: string) =>
  ({ vm_id: vmId, tenant_id: 't', worker_id: 'w1', state: 'running' }) as SandboxRow;

test('deletions of one sandbox call its worker once, however many there are at once', async () => {
  const requested: string[] = [];
  const store = {
    sandboxes: {
      requestDelete: async (vmId: string) => void requested.push(vmId),
      end: async () => undefined,
    },
    workers: { find: async () => ({ silent_ms: 0, removed_at: null }) },
  } as unknown as Pick<Store, 'sandboxes' | 'workers'>;
  const destroyed: string[] = [];
  let teardown = Promise.withResolvers<void>();
  const worker = {
    destroy: (vmId: string) => {
      destroyed.push(vmId);
      return teardown.promise;
    },
  };
  const deleter = new SandboxDeleter(store, {
    call: (_id: string, request: (w: typeof worker) => unknown) => request(worker),
  } as unknown as Fleet);
  const deletions = Array.from({ length: 200 }, (_, index) =>
    deleter.stop(row(index === 0 ? 'vm_2' : 'vm_1')),
  );
  await expect.poll(() => requested.length).toBe(200);
  await setImmediate();
  expect(destroyed.sort()).toEqual(['vm_1', 'vm_2']);
  teardown.resolve();
  await Promise.all(deletions);
  // One that failed does not decide the next.
  teardown = Promise.withResolvers();
  const again = [deleter.stop(row('vm_1')), deleter.stop(row('vm_1'))];
  teardown.reject(new Error('away'));
  for (const { status } of await Promise.allSettled(again)) expect(status).toBe('rejected');
  teardown = Promise.withResolvers();
  teardown.resolve();
  await deleter.stop(row('vm_1'));
  expect(destroyed).toEqual(['vm_1', 'vm_2', 'vm_1', 'vm_1']);
});
