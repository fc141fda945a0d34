import { loadConfig } from '@svc/config';
import { EgressPolicy } from '@svc/egress';
import { createLogger } from '@svc/service-kit';
import { openStore, type Store } from '@svc/store';
import type { WorkerDouble } from '@svc/worker-double';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { Harness } from '../../test/harness.ts';
import { AuditTrail } from '../audit/audit-trail.ts';
import type { ControlPlane } from '../index.ts';
import { MasterKeyring } from '../secrets/master-keyring.ts';
import { SecretBundles } from '../secrets/secret-bundles.ts';

const SECRETS = '/v1/tenants/me/secrets';
/** Longer than the pause between two looks at the ledger. */
const PROMPT = { timeout: 20_000 };

let harness: Harness;
let second: ControlPlane;
let ledger: Store;
let account: Awaited<ReturnType<Harness['signUp']>>;
let worker: WorkerDouble;

beforeAll(async () => {
  harness = await Harness.start();
  account = await harness.signUp();
  ledger = await openStore({
    url: harness.postgres.url,
    placement: { unreachableMs: 30_000, sandboxesPerTenant: 1 },
  });
});
afterAll(async () => {
  await ledger?.close();
  await harness?.[Symbol.asyncDispose]();
});
beforeEach(async () => {
  second = await harness.startAnother();
  await harness.reset();
  await harness.sql.query('truncate secret_bundles');
  await harness.addBundle(account.key, 'llm', { LLM_API_KEY: 'key-1' });
  worker = await harness.addWorker('w1');
});
afterEach(() => second?.close());

const start = () => harness.startSession(account.key);
const rotate = async (values: object, plane = harness.plane) => {
  const call = { key: account.key, json: { values }, plane };
  expect(await harness.call('PUT', `${SECRETS}/llm`, call)).toMatchObject({ status: 200 });
};
const secretsOf = async (vmId: string) =>
  (await worker.ask(second.url, 'GET', `/sandboxes/${vmId}/agent-secrets`)).json();
/** What is left of a PUT whose control plane dies with the commit: nothing of it but the ledger. */
const rotateAndDie = async (values: Record<string, string>) => {
  const bundles = new SecretBundles({
    store: ledger,
    keyring: await MasterKeyring.open(loadConfig({ SVC_DATA_DIR: harness.dataDir })),
    egress: new EgressPolicy([]),
    audit: new AuditTrail(ledger.audit, createLogger({ level: 'silent' })),
  });
  const caller = { tenantId: account.tenantId } as Parameters<SecretBundles['rotate']>[0];
  await bundles.rotate(caller, 'llm', values);
};
const outcomes = async () =>
  (await harness.sql.query('select outcome from config_updates')).rows.map((row) => row.outcome);

describe('a rotation reaches every running session', () => {
  test('if its control plane dies right after the commit', async () => {
    const sessions = [await start(), await start()];
    await rotateAndDie({ LLM_API_KEY: 'key-2', A: 'a-2' });
    await expect.poll(() => worker.configUpdates, PROMPT).toHaveLength(2);
    expect(worker.configUpdates.map(({ vmId }) => vmId).sort()).toEqual(
      sessions.map(({ vmId }) => vmId).sort(),
    );
    expect(worker.configUpdates[0]?.keys).toEqual(['A', 'LLM_API_KEY']);
  });

  test('if its control plane ends while the worker does not answer', async () => {
    const { vmId } = await start();
    worker.failures.set('config-update', 'internal_error');
    const dying = await harness.startAnother();
    await rotate({ LLM_API_KEY: 'key-2' }, dying);
    await dying.close();
    worker.failures.clear();
    await expect.poll(() => worker.configUpdates, PROMPT).toMatchObject([{ vmId }]);
  });

  test('if the worker is still starting its agent', async () => {
    const { vmId } = await start();
    worker.failures.set('config-update', 'sandbox_not_running');
    await rotate({ LLM_API_KEY: 'key-2' });
    await expect
      .poll(async () => (await harness.sql.query('select attempts from config_updates')).rows)
      .toMatchObject([{ attempts: expect.any(Number) }]);
    await expect
      .poll(
        async () =>
          (await harness.sql.query('select from config_updates where attempts > 1')).rowCount,
        PROMPT,
      )
      .toBe(1);
    worker.failures.clear();
    await expect.poll(() => worker.configUpdates, PROMPT).toMatchObject([{ vmId }]);
  });

  test('and outlives the bundle, even if the bundle is deleted before the notice arrives', async () => {
    const { vmId } = await start();
    worker.failures.set('config-update', 'internal_error');
    await rotateAndDie({ LLM_API_KEY: 'key-2' });
    await harness.call('DELETE', `${SECRETS}/llm`, { key: account.key, plane: second });
    expect(await secretsOf(vmId)).toMatchObject({ llm: { api_key: 'key-2' } });
  });
});

test('two control planes deliver each rotation once', async () => {
  const sessions = await Promise.all(Array.from({ length: 12 }, start));
  await rotate({ LLM_API_KEY: 'key-2' });
  await expect.poll(outcomes, PROMPT).toEqual(sessions.map(() => 'delivered'));
  await rotate({ LLM_API_KEY: 'key-3' }, second);
  await expect.poll(() => worker.configUpdates.length, PROMPT).toBeGreaterThanOrEqual(24);
  await expect.poll(outcomes, PROMPT).toEqual(sessions.map(() => 'delivered'));
  const told = worker.configUpdates.map(({ vmId, version }) => `${vmId} ${version}`);
  expect(told).toHaveLength(24);
  expect(new Set(told).size).toBe(24);
});

test('a rotation during the delivery of an earlier one is delivered too', async () => {
  const { vmId } = await start();
  const gate = Promise.withResolvers<void>();
  worker.beforeConfigUpdated = () => gate.promise;
  await rotate({ LLM_API_KEY: 'key-2' });
  await expect.poll(() => worker.configUpdates, PROMPT).toHaveLength(1);
  await rotate({ LLM_API_KEY: 'key-3', B: 'b' });
  gate.resolve();
  await expect.poll(outcomes, PROMPT).toEqual(['delivered']);
  expect(worker.configUpdates).toMatchObject([
    { vmId, keys: ['LLM_API_KEY'] },
    { vmId, keys: ['B', 'LLM_API_KEY'] },
  ]);
});

describe('a notice ends', () => {
  test('with its session', async () => {
    const session = await start();
    worker.failures.set('config-update', 'internal_error');
    await rotate({ LLM_API_KEY: 'key-2' });
    await harness.call('DELETE', `/v1/sessions/${session.id}`, { key: account.key });
    await ledger.configUpdates.endStale();
    expect(await outcomes()).toEqual(['ended']);
  });

  test('after the longest life of a session, and its record a day later', async () => {
    await start();
    worker.failures.set('config-update', 'internal_error');
    await rotate({ LLM_API_KEY: 'key-2' });
    await harness.sql.query(`update config_updates set expires_at = now() - interval '1 second'`);
    await ledger.configUpdates.endStale();
    expect(await outcomes()).toEqual(['expired']);
    await ledger.configUpdates.removeEnded(86_400, 100);
    expect(await outcomes()).toEqual(['expired']);
    await harness.sql.query(`update config_updates set ended_at = now() - interval '25 hours'`);
    await ledger.configUpdates.removeEnded(86_400, 100);
    expect(await outcomes()).toEqual([]);
  });
});
