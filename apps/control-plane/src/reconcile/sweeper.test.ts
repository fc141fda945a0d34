import { createLogger } from '@svc/service-kit';
import { openStore } from '@svc/store';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Harness } from '../../test/harness.ts';
import { whileLocked } from '../../test/while-locked.ts';
import { LostWorkers } from './lost-workers.ts';
import { sweep } from './sweeper.ts';

let harness: Harness;

beforeAll(async () => {
  harness = await Harness.start();
});
afterAll(() => harness?.[Symbol.asyncDispose]());

test('ends the sandboxes of a lost worker, but not those of a silent one, or one that is heard again', async () => {
  const { key } = await harness.signUp();
  const lost = await harness.addWorker('lost');
  const onLost = await harness.create(key);
  lost.memoryMib = 256;
  await lost.heartbeat(harness.plane.url);
  await harness.addWorker('silent');
  const onSilent = await harness.create(key);
  for (const id of ['first', 'second']) await harness.addWorker(id);
  const silence = (id: string, seconds: number) =>
    harness.sql.query(
      'update workers set heartbeat_at = now() - make_interval(secs => $2) where worker_id = $1',
      [id, seconds],
    );
  await silence('lost', 301);
  await silence('silent', 200);
  const store = await openStore({
    url: harness.postgres.url,
    placement: { unreachableMs: 30_000, sandboxesPerTenant: 1 },
  });
  const record = async (vmId: string) =>
    (await harness.call('GET', `/v1/sandboxes/${vmId}`, { key })).body;
  let passes = 0;
  const retention = {
    pass: async () => {
      passes += 1;
      return true;
    },
  };
  const parts = { store, retention, logger: createLogger({ level: 'silent' }) };

  // A control plane that has just started cannot tell: the worker may be about to register.
  const early = new AbortController();
  const started = { ...parts, lostWorkers: new LostWorkers(store.workers) };
  const listening = sweep(started, early.signal);
  await expect.poll(() => passes).toBe(1);
  expect(await record(onLost)).toMatchObject({ state: 'running' });
  early.abort();
  await listening;

  let time = 0;
  const lostWorkers = new LostWorkers(store.workers, () => {
    time += 300_000;
    return time;
  });

  // The worker is heard again while it is given up.
  const late = new AbortController();
  const sweepOnce = async () => {
    const sweeping = sweep({ ...parts, lostWorkers }, late.signal);
    await expect.poll(() => passes).toBe(2);
    late.abort();
    await sweeping;
  };
  await whileLocked(harness, {
    lock: `select from sandboxes where vm_id = '${onLost}' for update`,
    begin: sweepOnce,
    meanwhile: `update workers set heartbeat_at = now() where worker_id = 'lost'`,
  });
  expect(await record(onLost)).toMatchObject({ state: 'running' });

  await silence('lost', 301);
  const controller = new AbortController();
  const sweeping = sweep({ ...parts, lostWorkers }, controller.signal);
  await expect
    .poll(() => record(onLost))
    .toMatchObject({ state: 'destroyed', end_reason: 'worker_lost' });
  expect(await record(onSilent)).toMatchObject({ state: 'running' });
  controller.abort();
  await sweeping;
  await store.close();
});
