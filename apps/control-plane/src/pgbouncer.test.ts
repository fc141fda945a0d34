import { type PgBouncer, startPgBouncer, type TestPostgres } from '@svc/store/testing';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Harness } from '../test/harness.ts';

let bouncer: PgBouncer | undefined;
let harness: Harness;

beforeAll(async () => {
  const through = async ({ url }: TestPostgres) => {
    bouncer = await startPgBouncer(url);
    return bouncer.url;
  };
  harness = await Harness.start({}, { through });
});
afterAll(async () => {
  await harness?.[Symbol.asyncDispose]();
  await bouncer?.[Symbol.asyncDispose]();
});

test('a control plane behind PgBouncer serves accounts, sandboxes, sessions and workers', async () => {
  const { key } = await harness.signUp();
  const worker = await harness.addWorker('w1');
  await harness.addBundle(key, 'llm', { LLM_API_KEY: 'sk-1' });
  const created = await Promise.all(Array.from({ length: 10 }, () => harness.create(key)));
  expect(new Set(created).size).toBe(10);
  const { id } = await harness.startSession(key);
  expect(await harness.session(key, id)).toMatchObject({ status: 'active' });
  expect((await worker.heartbeat(harness.plane.url)).status).toBe(200);
  const ends = created.map((vmId) => harness.call('DELETE', `/v1/sandboxes/${vmId}`, { key }));
  for (const { status } of await Promise.all(ends)) expect(status).toBe(200);
  const listed = await harness.call('GET', '/v1/sandboxes', { key });
  expect(listed.status).toBe(200);
});
