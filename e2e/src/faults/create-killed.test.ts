import { randomUUID } from 'node:crypto';
import { until, vmRecords } from '@svc/service-driver';
import { expect, test } from 'vitest';
import { ledgerAgrees, returnsToIdle } from '../../test/machine/consistency.ts';
import { queryLedger } from '../../test/machine/ledger.ts';
import { LASTING, type OwnService, ownService } from '../../test/own-service.ts';

/** A sign that a create has come so far; looked for again and again. */
type Sign = (own: OwnService) => Promise<boolean>;

const ledgerHas = (condition: string): Sign => {
  return async ({ dataDir }) =>
    (await queryLedger(dataDir, `select 1 from sandboxes where ${condition}`)).length > 0;
};

const beginsToRun: Sign = async ({ dataDir }) =>
  (await vmRecords(dataDir)).some(({ state }) => state === 'running');

/** In the order of a create without a pool. */
const MOMENTS: readonly (readonly [string, Sign])[] = [
  ['the ledger has its row', ledgerHas(`state <> 'destroyed'`)],
  ['its directory is there', async ({ dataDir }) => (await vmRecords(dataDir)).length > 0],
  [
    'its record is there',
    async ({ dataDir }) => (await vmRecords(dataDir)).some(({ pid }) => pid !== undefined),
  ],
  [
    'it belongs to its sandbox',
    async ({ dataDir }) => (await vmRecords(dataDir)).some(({ vmId }) => vmId !== undefined),
  ],
  ['it is running, just before the answer', beginsToRun],
];

const own = ownService(0);

test.each(MOMENTS)('a crash during a create leaves nothing half made: %s', async (_name, sign) => {
  const { instance, account } = own;
  const early = await crashDuringCreate(randomUUID(), sign);
  const living = await ledgerAgrees(instance, account, 0);
  if (early !== undefined) expect(living).toEqual([early]);
  for (const id of living) await own.sandboxes.delete(id);
});

test('whoever asks again with the same key after a crash has one sandbox', async () => {
  const { sandboxes, instance, account } = own;
  const key = randomUUID();
  const early = await crashDuringCreate(key, beginsToRun);
  const { vm_id: id } = await sandboxes.create(LASTING, { idempotencyKey: key });
  expect(await ledgerAgrees(instance, account, 0)).toEqual([early ?? id]);
  expect(await sandboxes.create(LASTING, { idempotencyKey: key })).toMatchObject({ vm_id: id });
  await sandboxes.delete(id);
  await returnsToIdle(instance, own.idle);
});

/** Creates, and crashes the service at a moment; the id, if the answer still came. */
async function crashDuringCreate(idempotencyKey: string, sign: Sign): Promise<string | undefined> {
  const { sandboxes, service } = own;
  let answered = false;
  const create = sandboxes
    .create(LASTING, { idempotencyKey })
    .then(
      ({ vm_id }) => vm_id,
      () => undefined,
    )
    .finally(() => {
      answered = true;
    });
  await until('the moment', async () => answered || (await sign(own)), { intervalMs: 1 });
  await service.kill();
  const early = await create;
  await service.startAgain();
  return early;
}
