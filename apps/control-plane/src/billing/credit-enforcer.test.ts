import { CONTROL_PLANE_NAME } from '@svc/contract';
import { createLogger, createTokenMinter, deriveControlPlaneKey } from '@svc/service-kit';
import { settledWithin } from '@svc/service-kit/concurrency';
import { openStore, type Store } from '@svc/store';
import type { WorkerDouble } from '@svc/worker-double';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { CLUSTER_SECRET, Harness, sessionRequest } from '../../test/harness.ts';
import { WorkerConnections } from '../workers/connections.ts';
import { Fleet } from '../workers/fleet.ts';
import { WorkerClient } from '../workers/worker-client.ts';
import { CreditEnforcer } from './credit-enforcer.ts';

let harness: Harness;
let worker: WorkerDouble;
const connections = new WorkerConnections();
/** The stores and enforcers of two control planes, besides that of the harness. */
let stores: [Store, Store];
let enforcers: [CreditEnforcer, CreditEnforcer];
const never = new AbortController().signal;

beforeAll(async () => {
  harness = await Harness.start({ SVC_BILLING_ENFORCE: 'on', SVC_SIGNUP_GRANT_CENTS: '100' });
  const open = () =>
    openStore({
      url: harness.postgres.url,
      placement: { unreachableMs: 30_000, sandboxesPerTenant: 10 },
    });
  stores = [await open(), await open()];
  const logger = createLogger({ level: 'silent' });
  const mintToken = createTokenMinter(
    await deriveControlPlaneKey(CLUSTER_SECRET),
    CONTROL_PLANE_NAME,
  );
  const enforcerOf = (store: Store) => {
    const client = new WorkerClient({ connections, mintToken, logger });
    const fleet = new Fleet((id) => store.workers.find(id), client);
    return new CreditEnforcer({ store, fleet, logger });
  };
  enforcers = [enforcerOf(stores[0]), enforcerOf(stores[1])];
});
beforeEach(async () => {
  await harness.reset();
  worker = await harness.addWorker('w1');
});
afterAll(async () => {
  for (const store of stores ?? []) await store.close();
  await connections.close();
  await harness?.[Symbol.asyncDispose]();
});

type Account = Awaited<ReturnType<Harness['signUp']>>;

let entries = 0;
async function addCredit({ tenantId }: Account, amount: number): Promise<void> {
  entries += 1;
  const entry = { tenantId, kind: 'adjustment' as const, description: 'Test' };
  await stores[0].billing.add({ ...entry, amount, reference: `test ${entries}` });
}

/** An account whose sandbox runs and whose credit is then used up. */
async function exhausted(): Promise<{ account: Account; vmId: string }> {
  const account = await harness.signUp();
  const vmId = await harness.create(account.key);
  await addCredit(account, -100);
  return { account, vmId };
}

const runBoth = () => Promise.all(enforcers.map((enforcer) => enforcer.run(never)));

const record = async ({ key }: Account, vmId: string) =>
  (await harness.call('GET', `/v1/sandboxes/${vmId}`, { key })).body;

/** Seconds until the sandbox ends. */
async function graceOf(vmId: string): Promise<number | undefined> {
  const { rows } = await harness.sql.query<{ grace: number | null }>(
    'select extract(epoch from ends_at - now())::float8 as grace from credit_notices where vm_id = $1',
    [vmId],
  );
  return rows[0]?.grace ?? undefined;
}

const passGrace = () => harness.sql.query('update credit_notices set ends_at = now()');
/** As if whoever has claimed notices had died long ago. */
const passClaims = () => harness.sql.query('update credit_notices set due_at = now()');

describe('without credit', () => {
  async function create(account: Account, json: object = { template: 'standard' }) {
    const { status, body } = await harness.call('POST', '/v1/sandboxes', {
      key: account.key,
      json,
    });
    return [status, body.code];
  }

  test('a create is 402 after the rules of the request and before capacity', async () => {
    const account = await harness.signUp();
    await addCredit(account, -100);
    await harness.reset();
    const refused = [402, 'credits_exhausted'];
    expect(await create(account, { template: 7 })).toEqual([400, 'validation_failed']);
    expect(await create(account, { template: 'none' })).toEqual([501, 'unknown_template']);
    const reserved = { template: 'standard', env_vars: { SVC_PERSISTENCE_URL: 'x' } };
    expect(await create(account, reserved)).toEqual([400, 'reserved_env_var']);
    expect(await create(account)).toEqual(refused);
    await addCredit(account, 1);
    expect(await create(account)).toEqual([503, 'no_workers']);
  });

  test('a session cannot be created or resumed, and a running one is not stopped for it', async () => {
    const account = await harness.signUp();
    await harness.addBundle(account.key, 'llm', { LLM_API_KEY: 'k' });
    const { id } = await harness.startSession(account.key);
    await addCredit(account, -100);
    const created = await harness.call('POST', '/v1/sessions', {
      key: account.key,
      json: sessionRequest(),
    });
    expect(created).toMatchObject({ status: 402, body: { code: 'credits_exhausted' } });
    const resumed = await harness.call('POST', '/v1/sessions/resume', {
      key: account.key,
      json: { chat_session_id: id },
    });
    expect(resumed).toMatchObject({ status: 402, body: { code: 'credits_exhausted' } });
    expect((await harness.session(account.key, id)).status).toBe('active');
    const { body } = await harness.call('GET', '/v1/sessions', { key: account.key });
    expect(body.sessions).toHaveLength(1);
  });

  test('a repeated request still gets the answer of the first one', async () => {
    const account = await harness.signUp();
    const send = () =>
      harness.call('POST', '/v1/sandboxes', {
        key: account.key,
        json: { template: 'standard' },
        headers: { 'idempotency-key': 'k' },
      });
    const first = await send();
    await addCredit(account, -100);
    expect(await send()).toMatchObject({ status: 201, body: first.body });
  });
});

describe('a running sandbox without credit', () => {
  test('is cancelled once and ends a minute later, with two control planes', async () => {
    const { account, vmId } = await exhausted();
    const { vmId: other } = await exhausted();
    await runBoth();
    await runBoth();
    await expect.poll(() => graceOf(vmId)).toBeGreaterThan(50);
    expect(await graceOf(vmId)).toBeLessThanOrEqual(60);
    expect(worker.cancels.filter((cancel) => cancel.vmId === vmId)).toEqual([
      { vmId, reason: 'credits_exhausted' },
    ]);
    expect(await record(account, vmId)).toMatchObject({ state: 'running' });
    await harness.sql.query('update credit_notices set ends_at = now() where vm_id = $1', [vmId]);
    await runBoth();
    await expect
      .poll(() => record(account, vmId))
      .toMatchObject({ state: 'destroyed', end_reason: 'credits_exhausted' });
    expect(worker.sandboxes.get(vmId)).toMatchObject({ end_reason: 'credits_exhausted' });
    expect(worker.sandboxes.get(other)).toMatchObject({ state: 'running' });
  });

  test('goes on when credit arrives in that minute, and is cancelled again when it is used up', async () => {
    const { account, vmId } = await exhausted();
    await runBoth();
    await expect.poll(() => graceOf(vmId)).toBeGreaterThan(0);
    await addCredit(account, 1);
    await passGrace();
    await runBoth();
    expect(await graceOf(vmId)).toBeUndefined();
    expect(await record(account, vmId)).toMatchObject({ state: 'running' });
    await addCredit(account, -1);
    await runBoth();
    await expect.poll(() => graceOf(vmId)).toBeGreaterThan(50);
    expect(worker.cancels).toHaveLength(2);
  });

  test.each([
    ['to tell it', false],
    ['to end it', true],
  ])('ends although the control plane dies that was about %s', async (_what, told) => {
    const { account, vmId } = await exhausted();
    await stores[0].billing.updateNotices();
    if (told) {
      await runBoth();
      await expect.poll(() => graceOf(vmId)).toBeGreaterThan(0);
      await passGrace();
    }
    // It claims the sandbox and does nothing more.
    await stores[0].billing.claimUntold(10, 45);
    await stores[0].billing.claimOverdue(10, 75);
    await passClaims();
    await enforcers[1].run(never);
    await passGrace();
    await passClaims();
    await enforcers[1].run(never);
    await expect
      .poll(() => record(account, vmId))
      .toMatchObject({ state: 'destroyed', end_reason: 'credits_exhausted' });
  });

  test('ends although it cannot be told, as soon as its worker answers again', async () => {
    const { account, vmId } = await exhausted();
    worker.failures.set('cancel', 'guest_unresponsive');
    worker.failures.set('destroy', 'worker_unreachable');
    for (let attempt = 0; attempt < 3; attempt += 1) {
      await runBoth();
      await passClaims();
    }
    await expect.poll(() => graceOf(vmId)).toBeGreaterThan(0);
    await passGrace();
    await runBoth();
    expect(await record(account, vmId)).toMatchObject({ state: 'running' });
    worker.failures.clear();
    await passClaims();
    await runBoth();
    await expect
      .poll(() => record(account, vmId))
      .toMatchObject({ state: 'destroyed', end_reason: 'credits_exhausted' });
  });

  test('keeps no control plane from ending while its worker does not answer, and is ended by another', async () => {
    const { account, vmId } = await exhausted();
    await runBoth();
    await passGrace();
    const [asked, answer] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    worker.beforeDestroyed = async () => {
      asked.resolve();
      await answer.promise;
    };
    const closing = new AbortController();
    const run = enforcers[0].run(closing.signal);
    await asked.promise;
    closing.abort();
    expect(await settledWithin(run, 5_000)).toBe(true);
    answer.resolve();
    await passClaims();
    await enforcers[1].run(never);
    expect(await record(account, vmId)).toMatchObject({
      state: 'destroyed',
      end_reason: 'credits_exhausted',
    });
  });

  test('completes its session', async () => {
    const account = await harness.signUp();
    await harness.addBundle(account.key, 'llm', { LLM_API_KEY: 'k' });
    const { id, vmId } = await harness.startSession(account.key);
    await addCredit(account, -100);
    await runBoth();
    await expect.poll(() => graceOf(vmId)).toBeGreaterThan(0);
    await passGrace();
    await runBoth();
    await expect
      .poll(() => harness.session(account.key, id))
      .toMatchObject({ status: 'completed' });
  });
});
