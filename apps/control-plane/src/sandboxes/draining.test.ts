import type { WorkerDouble } from '@svc/worker-double';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { Harness } from '../../test/harness.ts';

let harness: Harness;
let key: string;
let worker: WorkerDouble;

beforeAll(async () => {
  harness = await Harness.start();
  key = (await harness.signUp()).key;
  await harness.addBundle(key, 'llm', { LLM_API_KEY: 'k' });
});
afterAll(() => harness?.[Symbol.asyncDispose]());
beforeEach(async () => {
  await harness.reset();
  worker = await harness.addWorker('big');
});

const drain = async () => {
  const { status } = await worker.heartbeat(harness.plane.url, worker.id, { draining: true });
  expect(status).toBe(200);
};
const create = () => harness.call('POST', '/v1/sandboxes', { key, json: { template: 'standard' } });

test('a worker that is going away gets no sandbox, not even as the only one', async () => {
  await drain();
  expect(await create()).toMatchObject({ status: 503, body: { code: 'no_workers' } });
  expect(worker.placed).toEqual([]);
  const small = await harness.addWorker('small', (one) => {
    one.memoryMib = 1024;
  });
  expect((await create()).status).toBe(201);
  expect(small.placed).toHaveLength(1);
  expect(worker.placed).toEqual([]);
});

test('takes sandboxes again once it has started again', async () => {
  await drain();
  await worker.register(harness.plane.url);
  expect((await create()).status).toBe(201);
});

test('gets none that is placed while it says so', async () => {
  const [, ...answers] = await Promise.all([drain(), ...Array.from({ length: 6 }, create)]);
  for (const { status } of answers) expect([201, 503]).toContain(status);
  const placed = worker.placed.length;
  expect((await create()).status).toBe(503);
  expect(worker.placed).toHaveLength(placed);
});

test('a session whose worker has drained is resumed on another one at once', async () => {
  const { id, vmId } = await harness.startSession(key);
  await drain();
  const other = await harness.addWorker('other');
  // Other sandboxes of the worker still end: it sends events and heartbeats until the last one has.
  await worker.event(harness.plane.url, worker.end(vmId, 'drained'));
  await worker.heartbeat(harness.plane.url, worker.id, { draining: true });
  expect(await harness.session(key, id)).toMatchObject({ status: 'completed' });
  const answer = await harness.call('POST', '/v1/sessions/resume', {
    key,
    json: { chat_session_id: id },
  });
  expect(answer).toMatchObject({
    status: 200,
    body: { resumed_from: { previous_status: 'completed' } },
  });
  expect(other.placed).toHaveLength(1);
  const record = await harness.call('GET', `/v1/sandboxes/${vmId}`, { key });
  expect(record.body).toMatchObject({ state: 'destroyed', end_reason: 'drained' });
});
