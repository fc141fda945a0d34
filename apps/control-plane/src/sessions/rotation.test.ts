import { loadConfig } from '@svc/config';
import type { AgentSecrets } from '@svc/contract';
import { createLogger } from '@svc/service-kit';
import { openStore } from '@svc/store';
import type { WorkerDouble } from '@svc/worker-double';
import { beforeEach, describe, expect, test } from 'vitest';
import type { Harness, StartedSession } from '../../test/harness.ts';
import { useWorker } from '../../test/use-worker.ts';
import { LostWorkers } from '../reconcile/lost-workers.ts';
import { sweep } from '../reconcile/sweeper.ts';
import { MasterKeyring } from '../secrets/master-keyring.ts';
import { rotateMasterKey } from '../secrets/rotate-master-key.ts';

const SECRETS = '/v1/tenants/me/secrets';

let harness: Harness;
let key: string;
let worker: WorkerDouble;

useWorker((fixture) => {
  ({ harness, key, worker } = fixture);
});
beforeEach(async () => {
  await harness.sql.query('truncate secret_bundles');
  await harness.addBundle(key, 'llm', { LLM_API_KEY: 'key-1', A: 'a-1' });
  await harness.addBundle(key, 'extra', { B: 'b-1' });
});

const start = () => harness.startSession(key, { secrets: ['llm', 'extra'] });
const rotate = async (name: string, values: object) => {
  const { status } = await harness.call('PUT', `${SECRETS}/${name}`, { key, json: { values } });
  expect(status).toBe(200);
};
/** Without the model, which rotated-model.test.ts covers. */
const secretsOf = async ({ vmId }: StartedSession) => {
  const path = `/sandboxes/${vmId}/agent-secrets`;
  const { llm = {}, ...rest } = (await (
    await worker.ask(harness.plane.url, 'GET', path)
  ).json()) as { readonly llm?: Partial<AgentSecrets['llm']> };
  const { model: _, ...others } = llm;
  return { ...rest, llm: others };
};
const openLedger = () =>
  openStore({
    url: harness.postgres.url,
    placement: { unreachableMs: 30_000, sandboxesPerTenant: 1 },
  });

describe('a rotation', () => {
  test('notifies the worker of every session that uses the bundle, and no other', async () => {
    const users = [await start(), await start()];
    await harness.startSession(key);
    const ended = await start();
    await harness.call('DELETE', `/v1/sessions/${ended.id}`, { key });
    await rotate('extra', { B: 'canary-2', C: 'c-2' });
    await expect.poll(() => worker.configUpdates).toHaveLength(2);
    const told = worker.configUpdates.map(({ vmId }) => vmId).sort();
    expect(told).toEqual(users.map(({ vmId }) => vmId).sort());
    expect(worker.configUpdates[0]?.keys).toEqual(['B', 'C']);
    expect(await secretsOf(users[0] ?? ended)).toEqual({
      llm: { api_key: 'key-1' },
      env: { A: 'a-1', B: 'canary-2', C: 'c-2' },
    });
    expect([...harness.logLines, await harness.dump()].join()).not.toContain('canary-2');
  });

  test('is announced until the worker accepts it, without delaying the caller', async () => {
    const session = await start();
    worker.failures.set('config-update', 'internal_error');
    await rotate('llm', { LLM_API_KEY: 'key-2' });
    await rotate('extra', { B: 'canary-2' });
    expect(await secretsOf(session)).toEqual({ llm: { api_key: 'key-2' }, env: { B: 'canary-2' } });
    worker.failures.clear();
    await expect
      .poll(() => worker.configUpdates.flatMap(({ keys }) => keys).sort(), { timeout: 30_000 })
      .toEqual(['B', 'LLM_API_KEY']);
  });

  test('of another tenant changes nothing', async () => {
    const session = await start();
    const stranger = await harness.signUp();
    await harness.addBundle(stranger.key, 'llm', { LLM_API_KEY: 'foreign' });
    await harness.call('PUT', `${SECRETS}/llm`, {
      key: stranger.key,
      json: { values: { LLM_API_KEY: 'foreign-2' } },
    });
    expect(await secretsOf(session)).toMatchObject({ llm: { api_key: 'key-1' } });
    expect(worker.configUpdates).toEqual([]);
  });

  test('during the start of a session is not missed', async () => {
    worker.beforeCreated = async () => {
      await rotate('llm', { LLM_API_KEY: 'key-2' });
    };
    expect(await secretsOf(await start())).toMatchObject({ llm: { api_key: 'key-2' } });
  });

  test('that removes the key leaves the session without one', async () => {
    const session = await start();
    await rotate('llm', {});
    expect(await secretsOf(session)).toEqual({ llm: { api_key: '' }, env: { B: 'b-1' } });
  });
});

test('running sessions keep the last values of a deleted bundle, even when another one is rotated', async () => {
  const session = await start();
  await rotate('llm', { LLM_API_KEY: 'key-2', A: 'a-2' });
  await harness.call('DELETE', `${SECRETS}/llm`, { key });
  await rotate('extra', { B: 'canary-2' });
  await harness.restart();
  expect(await secretsOf(session)).toEqual({
    llm: { api_key: 'key-2' },
    env: { A: 'a-2', B: 'canary-2' },
  });
  await harness.call('DELETE', `/v1/sessions/${session.id}`, { key });
  expect((await harness.sql.query('select 1 from agent_secrets')).rowCount).toBe(0);
});

test('secrets of running sessions survive a new master key and do not decrypt for another sandbox', async () => {
  const [one, two] = [await start(), await start()];
  const store = await openLedger();
  const ring = await MasterKeyring.open(loadConfig({ SVC_DATA_DIR: harness.dataDir }));
  const { rewrapped, keyId } = await rotateMasterKey(store, ring);
  await store.close();
  expect(rewrapped).toBe(4);
  const { rows } = await harness.sql.query('select distinct master_key_id from agent_secrets');
  expect(rows).toEqual([{ master_key_id: keyId }]);
  expect(await secretsOf(one)).toMatchObject({ llm: { api_key: 'key-1' } });
  await harness.sql.query(
    `update agent_secrets set (sealed_values, wrapped_key) =
       (select sealed_values, wrapped_key from agent_secrets where vm_id = $1) where vm_id = $2`,
    [one.vmId, two.vmId],
  );
  expect(await secretsOf(two)).toMatchObject({ status: 500 });
});

test('the remains of a crash are cleaned up', async () => {
  const [cut, held, fine] = [await start(), await start(), await start()];
  await harness.sql.query(
    `update sandboxes set state = 'destroyed', ended_at = now(), end_reason = 'deleted' where vm_id = any($1)`,
    [[cut.vmId, held.vmId]],
  );
  await harness.sql.query(
    `update sessions set busy_until = now() + interval '1 hour' where session_id = $1`,
    [held.id],
  );
  const store = await openLedger();
  const controller = new AbortController();
  const sweeping = sweep(
    {
      store,
      lostWorkers: new LostWorkers(store.workers),
      retention: { pass: async () => true },
      logger: createLogger({ level: 'silent' }),
    },
    controller.signal,
  );
  await expect.poll(async () => (await harness.session(key, cut.id)).status).toBe('failed');
  expect((await harness.session(key, held.id)).status).toBe('active');
  expect((await harness.session(key, fine.id)).status).toBe('active');
  // The sweeper of the control plane may have closed the session after an earlier look at the secrets.
  await expect
    .poll(async () => (await harness.sql.query('select vm_id from agent_secrets')).rows)
    .toEqual([{ vm_id: fine.vmId }]);
  controller.abort();
  await sweeping;
  await store.close();
});
