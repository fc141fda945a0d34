import { type HeartbeatResponse, LIMITS, placementFor } from '@svc/contract';
import { openFleet } from '@svc/store';
import type { WorkerDouble } from '@svc/worker-double';
import { expect, test } from 'vitest';
import type { Harness } from '../../test/harness.ts';
import { useWorker } from '../../test/use-worker.ts';

const PLACEMENT = placementFor({ template: 'standard', max_lifetime_seconds: 600 }, undefined);

let harness: Harness;
let key: string;
let worker: WorkerDouble;

useWorker((fixture) => {
  ({ harness, key, worker } = fixture);
});

/** As a restore to a time before the sandboxes were made. */
async function restoreLedger(): Promise<void> {
  await harness.sql.query('delete from sandboxes');
  await harness.sql.query('update tenants set active_sandboxes = 0');
  await harness.sql.query('update workers set reserved_memory_mib = 0');
}

async function heartbeat(of = worker): Promise<HeartbeatResponse> {
  return (await (await of.heartbeat(harness.plane.url)).json()) as HeartbeatResponse;
}

const order = (vmId: string, generation = 1) => ({ vm_id: vmId, generation });
const destroyOrder = (vmId: string) => ({ ...order(vmId), reason: 'deleted' });
const record = (vmId: string) => harness.call('GET', `/v1/sandboxes/${vmId}`, { key });

async function quarantine(): Promise<string> {
  const vmId = await harness.create(key);
  await restoreLedger();
  await heartbeat();
  worker.change(vmId, { placement: PLACEMENT });
  await heartbeat();
  return vmId;
}

test('a sandbox that a restored ledger does not know is kept, with every report', async () => {
  const vmId = await harness.create(key);
  await restoreLedger();
  for (let beat = 0; beat < 2; beat += 1) {
    expect(await heartbeat()).toEqual({ destroy: [], quarantine: [order(vmId)] });
  }
  const again = await (await worker.register(harness.plane.url)).json();
  expect(again).toMatchObject({ destroy: [], quarantine: [order(vmId)] });
  expect((await record(vmId)).status).toBe(404);
  expect((await harness.metrics()).svc_sandboxes_quarantined).toBe(1);
  const logged = harness.logLines.filter((line) => line.includes('svc worker quarantine ls'));
  expect(logged).toHaveLength(1);
});

test('a sandbox whose worker the restored ledger does not know either is kept', async () => {
  const vmId = await harness.create(key);
  await harness.sql.query('truncate sessions, sandboxes, workers cascade');
  expect((await worker.heartbeat(harness.plane.url)).status).toBe(404);
  const answer = await (await worker.register(harness.plane.url)).json();
  expect(answer).toMatchObject({ destroy: [], quarantine: [order(vmId)] });
});

test('a later placement than the restored ledger knows is kept, an earlier one ends', async () => {
  const vmId = await harness.create(key);
  worker.change(vmId, { generation: 2 });
  expect(await heartbeat()).toEqual({ destroy: [], quarantine: [order(vmId, 2)] });
  await harness.sql.query('update sandboxes set generation = 3');
  expect(await heartbeat()).toEqual({
    destroy: [{ ...order(vmId, 2), reason: 'deleted' }],
    quarantine: [],
  });
});

test('a VM that is left over from a creation that failed still ends', async () => {
  worker.failures.set('create', 'internal_error');
  const failed = await harness.call('POST', '/v1/sandboxes', {
    key,
    json: { template: 'standard' },
  });
  expect(failed.status).toBeGreaterThanOrEqual(500);
  const [placed] = worker.placed;
  if (placed === undefined) throw new Error('nothing was placed');
  worker.add(placed);
  expect(await heartbeat()).toEqual({ destroy: [destroyOrder(placed.vm_id)], quarantine: [] });
});

test('a released sandbox is back with its owner, counts, and leaves the quarantine', async () => {
  const vmId = await quarantine();
  await using operator = openFleet(harness.postgres.url);
  expect(await operator.quarantine.list()).toMatchObject([{ vm_id: vmId, worker_id: 'w1' }]);
  expect(await operator.quarantine.release(vmId)).toBeUndefined();
  expect(await heartbeat()).toEqual({ destroy: [] });
  expect((await record(vmId)).body).toMatchObject({ vm_id: vmId, state: 'running' });
  expect(await operator.quarantine.list()).toEqual([]);
  const { rows } = await harness.sql.query(
    `select active_sandboxes, reserved_memory_mib, max_lifetime_seconds
     from sandboxes join tenants using (tenant_id) join workers using (worker_id)`,
  );
  expect(rows).toEqual([
    { active_sandboxes: 1, reserved_memory_mib: 512, max_lifetime_seconds: 600 },
  ]);
  expect((await harness.call('DELETE', `/v1/sandboxes/${vmId}`, { key })).status).toBe(200);
});

test.each([
  ['its beginning', -1, 0],
  ['its quarantine at the latest, although it was made by a clock that is ahead', 1, -1],
])('a released sandbox has its usage counted from %s', async (_when, createdHours, foundHours) => {
  const vmId = await quarantine();
  const created = new Date(Date.now() + createdHours * 3_600_000).toISOString();
  worker.change(vmId, { created_at: created, running_at: created });
  await heartbeat();
  await harness.sql.query(
    `update quarantined_sandboxes set quarantined_at = now() + ${foundHours} * interval '1 hour'`,
  );
  await using operator = openFleet(harness.postgres.url);
  expect(await operator.quarantine.release(vmId)).toBeUndefined();
  const sample = { ...order(vmId), seq: 1, age_ms: 0, cpu_ms: 1_000, wall_ms: 3_500_000 };
  const counts = { input_tokens: 0, output_tokens: 0, tool_calls: 0 };
  const answer = await worker.ask(harness.plane.url, 'POST', '/usage', {
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ samples: [{ ...sample, ...counts }] }),
  });
  expect(await answer.json()).toEqual({ accepted: 1, known: 0, refused: [] });
});

test('a released sandbox is no larger than one may be, and was not made in the future', async () => {
  const vmId = await quarantine();
  const huge = 2 ** 31 - 1;
  worker.change(vmId, { vcpu: huge, memory_mib: huge, created_at: '2999-01-01T00:00:00Z' });
  await heartbeat();
  await using operator = openFleet(harness.postgres.url);
  expect(await operator.quarantine.release(vmId)).toBeUndefined();
  const { rows } = await harness.sql.query(
    `select sandboxes.vcpu, sandboxes.memory_mib, reserved_memory_mib, created_at <= now() as made
     from sandboxes join workers using (worker_id)`,
  );
  const { vcpuMax: vcpu, memoryMibMax: memory_mib } = LIMITS;
  expect(rows).toEqual([{ vcpu, memory_mib, reserved_memory_mib: memory_mib, made: true }]);
});

test('a sandbox is not released before its worker has said how it was placed', async () => {
  const vmId = await harness.create(key);
  await restoreLedger();
  await heartbeat();
  await using operator = openFleet(harness.postgres.url);
  expect(await operator.quarantine.release(vmId)).toBe('not_reported');
  expect(await operator.quarantine.release('vm_other')).toBe('unknown');
});

test('a sandbox without a tenant, or whose id the ledger has, is not released', async () => {
  const vmId = await quarantine();
  await using operator = openFleet(harness.postgres.url);
  worker.change(vmId, { tenant_id: 'usr_lost' });
  await heartbeat();
  expect(await operator.quarantine.release(vmId)).toBe('no_tenant');
  const known = await harness.create(key);
  worker.change(known, { generation: 2, placement: PLACEMENT });
  await heartbeat();
  expect(await operator.quarantine.release(known)).toBe('id_in_use');
  const { rows } = await harness.sql.query('select active_sandboxes from tenants');
  expect(rows).toEqual([{ active_sandboxes: 1 }]);
});

test('the end of a quarantine comes by an order, or after three days', async () => {
  const [ordered, old] = [await quarantine(), await harness.create(key)];
  await restoreLedger();
  await heartbeat();
  await using operator = openFleet(harness.postgres.url);
  expect(await operator.quarantine.end(ordered)).toBe(true);
  expect(await operator.quarantine.end('vm_other')).toBe(false);
  expect(await heartbeat()).toEqual({
    destroy: [destroyOrder(ordered)],
    quarantine: [order(old)],
  });
  const age = (interval: string) =>
    harness.sql.query(
      `update quarantined_sandboxes set quarantined_at = now() - interval '${interval}' where vm_id = $1`,
      [old],
    );
  await age('71 hours');
  expect((await heartbeat()).quarantine).toEqual([order(old)]);
  await age('73 hours');
  expect((await heartbeat()).destroy).toContainEqual(destroyOrder(old));
  for (const vmId of [ordered, old]) worker.end(vmId);
  expect(await heartbeat()).toEqual({ destroy: [], quarantine: [] });
  expect(await operator.quarantine.list()).toEqual([]);
});

test('a report with text that PostgreSQL cannot compare is stored all the same', async () => {
  const vmId = await harness.create(key);
  await restoreLedger();
  worker.change(vmId, { placement: { ...PLACEMENT, template: 'nul \0 and \ud800' } });
  expect(await heartbeat()).toEqual({ destroy: [], quarantine: [order(vmId)] });
});
