import { setImmediate } from 'node:timers/promises';
import type { SandboxRow, Store } from '@svc/store';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { Fleet } from '../workers/fleet.ts';
import type { DestroyOptions } from '../workers/worker-api.ts';
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

test('waits for longer than usual only if there is a workspace to be saved', async () => {
  const store = {
    sandboxes: { requestDelete: async () => undefined, end: async () => undefined },
  } as unknown as Pick<Store, 'sandboxes' | 'workers'>;
  const waits: (number | undefined)[] = [];
  const worker = {
    destroy: async (_vmId: string, _reason: string, { waitMs }: DestroyOptions) =>
      void waits.push(waitMs),
  };
  const deleter = new SandboxDeleter(store, {
    call: (_id: string, request: (w: typeof worker) => unknown) => request(worker),
  } as unknown as Fleet);
  const placement = { template: 'standard' };
  const workspace = { app_id: 'a', capset_id: 'c' };
  for (const placed of [null, placement, { ...placement, workspace }]) {
    await deleter.stop({ ...row('vm'), placement: placed } as SandboxRow);
  }
  expect(waits).toEqual([undefined, undefined, 7 * 60_000]);
});

describe('while the worker tears down', () => {
  const SILENT = { silent_ms: 60_000, removed_at: null };
  const HEARD = { silent_ms: 0, removed_at: null };
  let find: () => Promise<typeof SILENT>;
  let wait: AbortSignal | undefined;
  let teardown: PromiseWithResolvers<void>;
  let deleted: Promise<void>;

  beforeEach(async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    teardown = Promise.withResolvers();
    const store = {
      sandboxes: { requestDelete: async () => undefined, end: async () => undefined },
      workers: { find: () => find() },
    } as unknown as Pick<Store, 'sandboxes' | 'workers'>;
    const worker = {
      destroy: (_vmId: string, _reason: string, { signal }: DestroyOptions) => {
        wait = signal;
        signal?.addEventListener('abort', () => teardown.reject(signal.reason));
        return teardown.promise;
      },
    };
    const fleet = {
      call: (_id: string, request: (w: typeof worker) => unknown) => request(worker),
    };
    deleted = new SandboxDeleter(store, fleet as unknown as Fleet).stop(row('vm'));
    await setImmediate();
  });
  afterEach(() => vi.useRealTimers());

  /** Lets this time pass, of which each five seconds bring a look at the worker. */
  async function pass(seconds: number): Promise<void> {
    for (let passed = 0; passed < seconds; passed += 5) {
      vi.advanceTimersByTime(5_000);
      await setImmediate();
    }
  }

  test('goes on waiting if that is heard again soon after an outage of the database', async () => {
    for (let outages = 0; outages < 3; outages += 1) {
      find = async () => SILENT;
      await pass(20);
      find = async () => HEARD;
      await pass(5);
    }
    expect(wait?.aborted).toBe(false);
    teardown.resolve();
    await deleted;
  });

  test('goes on waiting after looks that the database has answered late, all at once', async () => {
    const back = Promise.withResolvers<typeof SILENT>();
    find = () => back.promise;
    await pass(120);
    back.resolve(SILENT);
    await setImmediate();
    expect(wait?.aborted).toBe(false);
    teardown.resolve();
    await deleted;
  });

  test('gives up a worker that stays silent', async () => {
    find = async () => SILENT;
    await pass(30);
    expect(wait?.aborted).toBe(true);
    await deleted;
  });
});
