import { randomUUID } from 'node:crypto';
import { until, vmRecords } from '@svc/service-driver';
import { describe, expect, test } from 'vitest';
import { ledgerAgrees, returnsToIdle } from '../../test/machine/consistency.ts';
import { queryLedger } from '../../test/machine/ledger.ts';
import { processesOf } from '../../test/machine/processes.ts';
import { LASTING, type OwnService, ownService } from '../../test/own-service.ts';

/** Whether an operation has reached a stage. */
type Stage = (own: OwnService) => Promise<boolean>;
type DeleteStage = (own: OwnService, vmId: string) => Promise<boolean>;

const ledgerHas = (condition: string): Stage => {
  return async ({ dataDir }) =>
    (await queryLedger(dataDir, `select 1 from sandboxes where ${condition}`)).length > 0;
};

const isRunning: Stage = async ({ dataDir }) =>
  (await vmRecords(dataDir)).some(({ state }) => state === 'running');

/** In the order in which a create without a pool passes them. */
const CREATE_STAGES: readonly (readonly [string, Stage])[] = [
  ['the ledger has its row', ledgerHas(`state <> 'destroyed'`)],
  ['its directory exists', async ({ dataDir }) => (await vmRecords(dataDir)).length > 0],
  [
    'its record exists',
    async ({ dataDir }) => (await vmRecords(dataDir)).some(({ pid }) => pid !== undefined),
  ],
  [
    'its record names the sandbox',
    async ({ dataDir }) => (await vmRecords(dataDir)).some(({ vmId }) => vmId !== undefined),
  ],
  ['it is running, just before the answer', isRunning],
];

/** In the order in which a delete passes them. */
const DELETE_STAGES: readonly (readonly [string, DeleteStage])[] = [
  [
    'the request is in the ledger',
    async ({ dataDir }, vmId) => {
      const requested = `vm_id = '${vmId}' and delete_requested_at is not null`;
      return (await queryLedger(dataDir, `select 1 from sandboxes where ${requested}`)).length > 0;
    },
  ],
  [
    'the VM is marked',
    async ({ dataDir }, vmId) =>
      (await vmRecords(dataDir)).every((vm) => vm.vmId !== vmId || vm.ending),
  ],
  [
    'its process is gone',
    async ({ instance }) => (await processesOf(instance)).filter(isVm).length < 2,
  ],
];

const isVm = ({ kind }: { kind: string }) => kind === 'vm';

const own = ownService(0);

describe('a crash during a create', () => {
  test.each(CREATE_STAGES)('leaves no partial sandbox: %s', async (_name, reached) => {
    const { instance, account } = own;
    const early = await crashDuringCreate(randomUUID(), reached);
    const living = await ledgerAgrees(instance, account, 0);
    if (early !== undefined) expect(living).toEqual([early]);
    for (const id of living) await own.sandboxes.delete(id);
  });

  test('and a repeated create with the same key yield one sandbox', async () => {
    const { sandboxes, instance, account } = own;
    const key = randomUUID();
    const early = await crashDuringCreate(key, isRunning);
    const { vm_id: id } = await sandboxes.create(LASTING, { idempotencyKey: key });
    expect(await ledgerAgrees(instance, account, 0)).toEqual([early ?? id]);
    expect(await sandboxes.create(LASTING, { idempotencyKey: key })).toMatchObject({ vm_id: id });
    await sandboxes.delete(id);
    await returnsToIdle(instance, own.idle);
  });
});

describe('a crash during a delete', () => {
  test.each(DELETE_STAGES)(
    'leaves the sandbox either whole or deleted: %s',
    async (_name, reached) => {
      const { sandboxes, service, instance, account, dataDir } = own;
      const [kept = '', id = ''] = await Promise.all([own.create(), own.create()]);
      let answered = false;
      const deleted = sandboxes.delete(id).then(
        () => true,
        () => false,
      );
      void deleted.then(() => {
        answered = true;
      });
      await until('the delete has progressed', async () => answered || (await reached(own, id)), {
        intervalMs: 1,
      });
      await service.kill();
      const confirmed = await deleted;
      const rows = await queryLedger<{ delete_requested_at: Date | null }>(
        dataDir,
        `select delete_requested_at from sandboxes where vm_id = '${id}'`,
      );
      const requested = rows[0]?.delete_requested_at !== null;
      await service.startAgain();

      // A delete in the ledger is carried out without a repeated request.
      if (requested || confirmed) {
        const ended = await until('the delete is completed', async () => {
          const record = await sandboxes.get(id);
          return record.state === 'destroyed' && record;
        });
        expect(ended.end_reason).toBe('deleted');
      }
      const expected = requested || confirmed ? [kept] : [kept, id].sort();
      expect(await ledgerAgrees(instance, account, 0)).toEqual(expected);
      expect(await sandboxes.delete(id)).toEqual({ vm_id: id, state: 'destroyed' });
      await sandboxes.delete(kept);
    },
  );

  test('no resource is left over afterwards', async () => {
    await returnsToIdle(own.instance, own.idle);
  });
});

/** Creates a sandbox and crashes the service at a stage. Returns the id if the create was answered before. */
async function crashDuringCreate(
  idempotencyKey: string,
  reached: Stage,
): Promise<string | undefined> {
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
  await until('the create has progressed', async () => answered || (await reached(own)), {
    intervalMs: 1,
  });
  await service.kill();
  const early = await create;
  await service.startAgain();
  return early;
}
