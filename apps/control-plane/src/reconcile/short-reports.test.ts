import type { RenewLeaseResponse } from '@svc/contract';
import type { WorkerDouble } from '@svc/worker-double';
import { expect, test } from 'vitest';
import type { Harness } from '../../test/harness.ts';
import { useWorker } from '../../test/use-worker.ts';

let harness: Harness;
let key: string;
let worker: WorkerDouble;

useWorker((fixture) => {
  ({ harness, key, worker } = fixture);
});

async function renew(changes: object = {}): Promise<RenewLeaseResponse> {
  const answer = await worker.renewLease(harness.plane.url, worker.id, changes);
  expect(answer.status).toBe(200);
  return (await answer.json()) as RenewLeaseResponse;
}

async function sandbox(vmId: string) {
  return (await harness.call('GET', `/v1/sandboxes/${vmId}`, { key })).body;
}

const reportOf = (vmId: string) => ({ sandboxes: [worker.sandboxes.get(vmId)] });
const HOUR = `interval '1 hour'`;

test('keep the worker, its capacity and the sandboxes that they do not name', async () => {
  const vmId = await harness.create(key);
  await harness.sql.query(
    `update sandboxes set placed_at = now() - ${HOUR}, created_at = now() - ${HOUR}`,
  );
  await harness.sql.query(`update workers set heartbeat_at = now() - interval '20 seconds'`);
  expect(await renew({ free: { memory_mib: 77, disk_mib: 88 } })).toEqual({ destroy: [] });
  const { rows } = await harness.sql.query(
    `select heartbeat_at > now() - interval '18 seconds' as is_alive, memory_mib > 0 as has_capacity,
      templates <> '[]' as has_templates, free_memory_mib, free_disk_mib from workers`,
  );
  expect(rows).toEqual([
    {
      is_alive: true,
      has_capacity: true,
      has_templates: true,
      free_memory_mib: 77,
      free_disk_mib: 88,
    },
  ]);
  expect(await sandbox(vmId)).toMatchObject({ state: 'running' });
  // A complete report without it would end it.
  await worker.heartbeat(harness.plane.url, worker.id, { sandboxes: [] });
  expect(await sandbox(vmId)).toMatchObject({ state: 'destroyed', end_reason: 'worker_lost' });
});

test('change the capacity, the templates and the sandboxes that they name', async () => {
  const [changed, ended] = [await harness.create(key), await harness.create(key)];
  worker.change(changed, { host_port: 3333 });
  worker.end(ended, 'max_lifetime');
  const capacity = { vcpu: 7, memory_mib: 4096, disk_mib: 8192 };
  const sandboxes = [changed, ended].map((vmId) => worker.sandboxes.get(vmId));
  expect(await renew({ capacity, templates: [], sandboxes })).toEqual({ destroy: [] });
  expect(await sandbox(changed)).toMatchObject({ host_port: 3333 });
  expect(await sandbox(ended)).toMatchObject({ state: 'destroyed', end_reason: 'max_lifetime' });
  const { rows } = await harness.sql.query(
    'select vcpu, memory_mib, disk_mib, templates from workers',
  );
  expect(rows).toEqual([{ ...capacity, templates: [] }]);
});

test('order the end of a sandbox that they name and the ledger has ended', async () => {
  const vmId = await harness.create(key);
  await harness.sql.query(
    `update sandboxes set state = 'destroyed', ended_at = now(), end_reason = 'worker_lost'`,
  );
  const order = { vm_id: vmId, generation: 1, reason: 'deleted' };
  expect(await renew(reportOf(vmId))).toEqual({ destroy: [order] });
});

test.each([
  ['has a sandbox to be deleted', 'update sandboxes set delete_requested_at = now()', false],
  ['names a sandbox that the ledger does not know', 'delete from sandboxes', true],
])('ask for a complete one when the worker %s', async (_, statement, isNamed) => {
  const vmId = await harness.create(key);
  expect(await renew()).toEqual({ destroy: [] });
  await harness.sql.query(statement);
  const { destroy: _destroy, ...answer } = await renew(isNamed ? reportOf(vmId) : {});
  expect(answer).toEqual({ report_all: true });
});

test('ask for a complete one as long as the worker has sandboxes in quarantine', async () => {
  const vmId = await harness.create(key);
  await harness.sql.query('delete from sandboxes');
  await worker.heartbeat(harness.plane.url);
  expect(await renew()).toEqual({ destroy: [], report_all: true });
  worker.sandboxes.delete(vmId);
  await worker.heartbeat(harness.plane.url);
  expect(await renew()).toEqual({ destroy: [] });
});

test('are refused after a long silence, when the sandboxes may be elsewhere', async () => {
  await harness.sql.query(`update workers set heartbeat_at = now() - interval '31 seconds'`);
  const answer = await worker.renewLease(harness.plane.url);
  expect([answer.status, await answer.json()]).toMatchObject([
    404,
    { code: 'worker_not_registered' },
  ]);
  await worker.register(harness.plane.url);
  expect(await renew()).toEqual({ destroy: [] });
});

test('are refused in the name of another worker, of another machine, and of one that was removed', async () => {
  const other = await harness.addWorker('worker-2');
  const inItsName = await other.renewLease(harness.plane.url, worker.id);
  expect(inItsName.status).toBe(403);
  await harness.sql.query(`update workers set instance_id = 'the first machine'`);
  const statusOf = async (changes: object) =>
    (await worker.renewLease(harness.plane.url, worker.id, changes)).status;
  expect(await statusOf({ instance_id: 'a copy' })).toBe(404);
  expect(await statusOf({ instance_id: 'the first machine' })).toBe(200);
  await harness.sql.query('update workers set removed_at = now()');
  expect(await statusOf({ instance_id: 'the first machine' })).toBe(404);
});

test('tell a worker to drain, and that it drains', async () => {
  await harness.sql.query('update workers set drain_requested = true');
  expect(await renew({ draining: true })).toEqual({ destroy: [], drain: true });
  const { rows } = await harness.sql.query('select draining from workers');
  expect(rows).toEqual([{ draining: true }]);
});
