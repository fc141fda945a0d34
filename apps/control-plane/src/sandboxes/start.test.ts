import { ServiceError } from '@svc/contract';
import type { Store } from '@svc/store';
import { expect, test } from 'vitest';
import type { Fleet } from '../workers/fleet.ts';
import { SandboxStarter } from './start.ts';

test('a sandbox that cannot be placed on another worker leaves no placement behind', async () => {
  const placed = { vm_id: 'vm', worker_id: 'w1', generation: 1, created_at: new Date() };
  const forgotten: unknown[] = [];
  const failure = new ServiceError('database_unavailable');
  const sandboxes = {
    reserve: async () => ({ placed: { ...placed, placement: { template: 'standard', size: {} } } }),
    placeAgain: () => Promise.reject(failure),
    forget: async (...ending: unknown[]) => {
      forgotten.push(ending);
      return placed;
    },
  };
  const worker = { create: () => Promise.reject(new ServiceError('no_capacity')) };
  const starter = new SandboxStarter({
    store: { sandboxes } as unknown as Pick<Store, 'sandboxes'>,
    fleet: { at: () => worker } as unknown as Fleet,
    vault: {} as ConstructorParameters<typeof SandboxStarter>[0]['vault'],
    credit: { check: async () => undefined } as unknown as ConstructorParameters<
      typeof SandboxStarter
    >[0]['credit'],
  });
  const request = { template: 'standard' } as Parameters<SandboxStarter['start']>[0]['request'];
  const started = starter.start(
    { vmId: 'vm', tenantId: 't', request, agent: undefined },
    new AbortController().signal,
  );
  await expect(started).rejects.toBe(failure);
  expect(forgotten).toEqual([['vm', 1]]);
});
