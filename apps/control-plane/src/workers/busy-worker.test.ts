import type { WorkerDouble } from '@svc/worker-double';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Harness } from '../../test/harness.ts';

/** More than the connections for work that a control plane opens to one worker. */
const COMMANDS = 1100;
const SANDBOXES = 16;

let harness: Harness;
let worker: WorkerDouble;

beforeAll(async () => {
  // One tenant stands for the many that it takes with the default limits.
  harness = await Harness.start({
    SVC_LIMIT_OPERATIONS_PER_TENANT: '2000',
    SVC_LIMIT_REQUESTS_PER_TENANT: '2000',
  });
  worker = await harness.addWorker('w1', (double) => {
    double.memoryMib = 1_000_000;
  });
});
afterAll(() => harness?.[Symbol.asyncDispose]());

test('long commands that take every connection for work leave a neighbour and every deletion theirs', async () => {
  const [attacker, neighbour] = [await harness.signUp(), await harness.signUp()];
  const created = Array.from({ length: SANDBOXES }, () => harness.create(attacker.key));
  const ids = await Promise.all(created);
  const leave = new AbortController();
  const hang = async (id: string | undefined) => {
    // On a busy machine some of so many handshakes time out.
    while (!leave.signal.aborted) {
      const call = { key: attacker.key, json: { command: 'hang' }, signal: leave.signal };
      await harness.call('POST', `/v1/sandboxes/${id}/exec`, call).catch(() => undefined);
    }
  };
  const commands = Array.from({ length: COMMANDS }, (_, index) => hang(ids[index % SANDBOXES]));
  await expect.poll(() => worker.busy, { timeout: 60_000 }).toBe(1024);

  // Its last heartbeat may be old by now.
  expect((await worker.register(harness.plane.url)).status).toBe(200);
  const { key } = neighbour;
  const vmId = await harness.create(key);
  expect((await harness.call('GET', '/v1/sandboxes', { key })).body).toMatchObject([
    { vm_id: vmId, state: 'running' },
  ]);
  for (const change of ['pause', 'resume', 'cancel']) {
    const answer = await harness.call('POST', `/v1/sandboxes/${vmId}/${change}`, { key });
    expect(answer.status, change).toBe(200);
  }
  const own = ids.map((id) => [id, attacker.key] as const);
  for (const [id, owner] of [[vmId, key] as const, ...own]) {
    const answer = await harness.call('DELETE', `/v1/sandboxes/${id}`, { key: owner });
    expect(answer).toMatchObject({ status: 200, body: { state: 'destroyed' } });
  }
  leave.abort();
  await Promise.all(commands);
}, 120_000);
