import { until, vmPid, vmRecords } from '@svc/service-driver';
import { expect, test } from 'vitest';
import { ledgerAgrees, returnsToIdle } from '../../test/machine/consistency.ts';
import { killHard } from '../../test/machine/processes.ts';
import { ownService } from '../../test/own-service.ts';

const POOL = 1;
const NOTICED_WITHIN_MS = 5_000;

const own = ownService(POOL);

test('a sandbox whose VM dies is destroyed within five seconds and says why; the others do not notice', async () => {
  const { sandboxes, dataDir } = own;
  const ids = [await own.create(), await own.create(), await own.create()];
  const [running = '', paused = '', other = ''] = ids;
  await sandboxes.pause(paused);
  const busy = sandboxes.exec(running, 'sleep 600').catch((error: unknown) => error);
  await until(
    'the command runs',
    async () => (await own.run(running, 'pgrep -fx "sleep 600" || true')) !== '',
  );
  for (const id of [running, paused]) {
    killHard(await vmPid(dataDir, id));
    const ended = await until(
      'the loss is noticed',
      async () => {
        const record = await sandboxes.get(id);
        return record.state === 'destroyed' && record;
      },
      { deadlineMs: NOTICED_WITHIN_MS, intervalMs: 50 },
    );
    expect(ended.end_reason).toBe('worker_lost');
    expect(ended.ended_at).toBeDefined();
    expect(await own.run(other, 'echo here')).toBe('here');
  }
  expect(await busy).toMatchObject({ name: 'SvcError', code: 'sandbox_not_running' });
  await expect(sandboxes.exec(running, 'true')).rejects.toMatchObject({
    code: 'sandbox_not_running',
    status: 409,
  });
  await sandboxes.delete(other);
  await returnsToIdle(own.instance, own.idle);
});

test('an idle VM of the pool that dies is replaced', async () => {
  const { dataDir } = own;
  const [idle] = await vmRecords(dataDir);
  killHard(idle?.pid ?? Number.NaN);
  // At once: the pool may not have noticed yet.
  const id = await own.create();
  expect(await own.run(id, 'echo here')).toBe('here');
  await until('another one is ready in its place', async () => {
    const vms = await vmRecords(dataDir);
    const ready = vms.some((vm) => vm.vmId === undefined && vm.pid !== undefined);
    return ready && vms.every(({ name }) => name !== idle?.name);
  });
  expect(await ledgerAgrees(own.instance, own.account, POOL)).toEqual([id]);
  await own.sandboxes.delete(id);
  await returnsToIdle(own.instance, own.idle);
});

test('VMs that died while no service ran are destroyed in the ledger after the next start', async () => {
  const { sandboxes, service, dataDir } = own;
  const dead = await own.create();
  const alive = await own.create();
  const process = await vmPid(dataDir, dead);
  await service.kill();
  killHard(process);
  await service.startAgain();
  const ended = await until('the loss is noticed', async () => {
    const record = await sandboxes.get(dead);
    return record.state === 'destroyed' && record;
  });
  expect(ended.end_reason).toBe('worker_lost');
  expect(await ledgerAgrees(own.instance, own.account, POOL)).toEqual([alive]);
  await sandboxes.delete(alive);
  await returnsToIdle(own.instance, own.idle);
});
