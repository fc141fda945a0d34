import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { ledgerAgrees, returnsToIdle } from '../machine/consistency.ts';
import { queryLedger } from '../machine/database.ts';
import { processesOf } from '../machine/processes.ts';
import { vmsOf } from '../machine/vms.ts';
import { until } from '../support/until.ts';
import { LASTING, type OwnService, ownService } from './own-service.ts';

/** A sign that a create has come so far; looked for again and again. */
type Sign = (own: OwnService) => Promise<boolean>;

const ledgerHas = (condition: string): Sign => {
  return async ({ dataDir }) =>
    (await queryLedger(dataDir, `select 1 from sandboxes where ${condition}`)).length > 0;
};

/** In the order of a create without a pool. */
const MOMENTS: readonly (readonly [string, Sign])[] = [
  ['the request is on its way', async () => true],
  ['the ledger has its row', ledgerHas(`state <> 'destroyed'`)],
  ['its directory is there', async ({ dataDir }) => (await vmsOf(dataDir)).length > 0],
  [
    'its process is there',
    async ({ instance }) => (await processesOf(instance)).some(({ kind }) => kind === 'vm'),
  ],
  [
    'its record is there',
    async ({ dataDir }) => (await vmsOf(dataDir)).some(({ pid }) => pid !== undefined),
  ],
  [
    'it belongs to its sandbox',
    async ({ dataDir }) => (await vmsOf(dataDir)).some(({ vmId }) => vmId !== undefined),
  ],
  [
    'it is running, just before the answer',
    async ({ dataDir }) => (await vmsOf(dataDir)).some(({ state }) => state === 'running'),
  ],
];

const own = ownService(0);

test.each(MOMENTS)('a crash during a create leaves nothing half made: %s', async (_name, sign) => {
  const { sandboxes, service, instance, account } = own;
  const idempotencyKey = randomUUID();
  const create = sandboxes.create(LASTING, { idempotencyKey }).then(
    ({ vm_id }) => vm_id,
    () => undefined,
  );
  let answered = false;
  void create.then(() => {
    answered = true;
  });
  await until('the moment', async () => answered || (await sign(own)), { intervalMs: 1 });
  await service.kill9();
  const early = await create;
  await service.startAgain();

  const living = await ledgerAgrees(instance, account, 0);
  if (early !== undefined) expect(living).toEqual([early]);
  // Whoever asks again with the same key gets the one sandbox, made before the crash or now.
  const { vm_id: id } = await account.client.sandboxes.create(LASTING, { idempotencyKey });
  expect(await ledgerAgrees(instance, account, 0)).toEqual([id]);
  expect(living.length === 0 || living[0] === id).toBe(true);
  await sandboxes.delete(id);
  await returnsToIdle(instance, own.idle);
});
