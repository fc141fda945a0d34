import { createLogger } from '@svc/service-kit';
import { openStore } from '@svc/store';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Harness } from '../../test/harness.ts';
import { sweep } from './sweeper.ts';

let harness: Harness;

beforeAll(async () => {
  harness = await Harness.start();
});
const expiredCodes = async () =>
  (await harness.sql.query(`select from otp_codes where expires_at < now()`)).rowCount;

afterAll(() => harness?.[Symbol.asyncDispose]());

test('ends the sandboxes of a lost worker, but not those of a silent one', async () => {
  const { key } = await harness.signUp();
  const lost = await harness.addWorker('lost');
  const onLost = await harness.create(key);
  lost.memoryMib = 256;
  await lost.heartbeat(harness.plane.url);
  await harness.addWorker('silent');
  const onSilent = await harness.create(key);
  await harness.sql.query(
    `update workers set heartbeat_at = now() -
       case worker_id when 'lost' then interval '301 seconds' else interval '200 seconds' end`,
  );
  await harness.sql.query(
    `insert into otp_codes (email, code_hash, expires_at)
     values ('late@svc.test', '', now() - interval '1 second')`,
  );
  const store = await openStore({
    url: harness.postgres.url,
    placement: { unreachableMs: 30_000, sandboxesPerTenant: 1 },
  });
  const record = async (vmId: string) =>
    (await harness.call('GET', `/v1/sandboxes/${vmId}`, { key })).body;
  const logger = createLogger({ level: 'silent' });

  // A control plane that has just started cannot tell: the worker may be about to register.
  const early = new AbortController();
  const listening = sweep(store, logger, early.signal);
  await expect.poll(expiredCodes).toBe(0);
  expect(await record(onLost)).toMatchObject({ state: 'running' });
  early.abort();
  await listening;

  const controller = new AbortController();
  let time = 0;
  const sweeping = sweep(store, logger, controller.signal, () => {
    time += 300_000;
    return time;
  });
  await expect
    .poll(() => record(onLost))
    .toMatchObject({ state: 'destroyed', end_reason: 'worker_lost' });
  expect(await record(onSilent)).toMatchObject({ state: 'running' });
  controller.abort();
  await sweeping;
  await store.close();
});
