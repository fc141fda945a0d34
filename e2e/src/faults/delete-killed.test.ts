import { until, vmRecords } from '@svc/service-driver';
import { expect, test } from 'vitest';
import { ledgerAgrees, returnsToIdle } from '../../test/machine/consistency.ts';
import { queryLedger } from '../../test/machine/ledger.ts';
import { processesOf } from '../../test/machine/processes.ts';
import { type OwnService, ownService } from '../../test/own-service.ts';

type Sign = (own: OwnService, vmId: string) => Promise<boolean>;

/** In the order of a delete. */
const MOMENTS: readonly (readonly [string, Sign])[] = [
  [
    'the wish is in the ledger',
    async ({ dataDir }, vmId) => {
      const wished = `vm_id = '${vmId}' and delete_requested_at is not null`;
      return (await queryLedger(dataDir, `select 1 from sandboxes where ${wished}`)).length > 0;
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

test.each(MOMENTS)('a crash during a delete ends in all or nothing: %s', async (_name, sign) => {
  const { sandboxes, service, instance, account, dataDir } = own;
  const [kept, id] = [await own.create(), await own.create()];
  let answered = false;
  const deleted = sandboxes.delete(id).then(
    () => true,
    () => false,
  );
  void deleted.then(() => {
    answered = true;
  });
  await until('the moment', async () => answered || (await sign(own, id)), { intervalMs: 1 });
  await service.kill();
  const confirmed = await deleted;
  const wish = await queryLedger<{ delete_requested_at: Date | null }>(
    dataDir,
    `select delete_requested_at from sandboxes where vm_id = '${id}'`,
  );
  const wished = wish[0]?.delete_requested_at !== null;
  await service.startAgain();

  // A wish that was noted is carried out, though nobody asks again.
  if (wished || confirmed) {
    const ended = await until('the delete is completed', async () => {
      const record = await sandboxes.get(id);
      return record.state === 'destroyed' && record;
    });
    expect(ended.end_reason).toBe('deleted');
  }
  const expected = wished || confirmed ? [kept] : [kept, id].sort();
  expect(await ledgerAgrees(instance, account, 0)).toEqual(expected);
  expect(await sandboxes.delete(id)).toEqual({ vm_id: id, state: 'destroyed' });
  await sandboxes.delete(kept);
});

test('after all that, nothing is left over', async () => {
  await returnsToIdle(own.instance, own.idle);
});
