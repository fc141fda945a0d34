import { CONTROL_PLANE_NAME, INTERNAL_PREFIX, WORKER_TIMES } from '@svc/contract';
import { createTokenMinter, generateKeyPair } from '@svc/service-kit';
import { ComponentDouble, type WorkerDouble } from '@svc/worker-double';
import { describe, expect, test } from 'vitest';
import { CLUSTER_SECRET, type Harness } from '../../../test/harness.ts';
import { useWorker } from '../../../test/use-worker.ts';

let harness: Harness;
let key: string;
let worker: WorkerDouble;

useWorker((fixture) => {
  ({ harness, key, worker } = fixture);
});

const url = () => harness.plane.url;
const record = async (vmId: string) =>
  (await harness.call('GET', `/v1/sandboxes/${vmId}`, { key })).body;
const age = () => harness.sql.query(`update sandboxes set placed_at = now() - interval '1 hour'`);

describe('events', () => {
  test('update the ledger immediately', async () => {
    const vmId = await harness.create(key);
    expect((await worker.event(url(), worker.change(vmId, { state: 'paused' }))).status).toBe(204);
    expect(await record(vmId)).toMatchObject({ state: 'paused' });
  });

  test('end sandboxes with their reason', async () => {
    const vmId = await harness.create(key);
    await worker.event(url(), worker.end(vmId, 'idle_timeout'));
    expect(await record(vmId)).toMatchObject({ state: 'destroyed', end_reason: 'idle_timeout' });
  });

  test('that arrive late change nothing', async () => {
    const vmId = await harness.create(key);
    const running = worker.change(vmId, { state: 'running' });
    await worker.event(url(), worker.change(vmId, { state: 'paused' }));
    await worker.event(url(), running);
    expect(await record(vmId)).toMatchObject({ state: 'paused' });
  });

  test('of an unknown sandbox are accepted and ignored', async () => {
    const vmId = await harness.create(key);
    const stranger = { ...worker.change(vmId, {}), vm_id: 'vm_unknown' };
    expect((await worker.event(url(), stranger)).status).toBe(204);
  });
});

describe('reports of a newer worker', () => {
  const later = { state: 'hibernating', agent_status: 'thinking', end_reason: 'moved' } as const;

  test('with words that this version does not know change nothing that it knows', async () => {
    const [odd, plain] = [await harness.create(key), await harness.create(key)];
    worker.change(plain, { state: 'paused' });
    const reports = [...worker.sandboxes.values()].map((report) =>
      report.vm_id === odd ? { ...report, ...later } : report,
    );
    for (const answer of [
      await worker.heartbeat(url(), 'w1', { sandboxes: reports }),
      await worker.register(url(), { sandboxes: reports }),
    ]) {
      expect(answer.status).toBe(200);
      expect(await answer.json()).toMatchObject({ destroy: [] });
    }
    expect(await record(plain)).toMatchObject({ state: 'paused' });
    worker.lies.set('list', () => ({ body: JSON.stringify({ sandboxes: reports }) }));
    const { body: list } = await harness.call('GET', '/v1/sandboxes', { key });
    expect(list).toMatchObject([{ state: 'running' }, { state: 'paused' }]);
  });

  test('of an end for an unknown reason end the sandbox in order', async () => {
    const vmId = await harness.create(key);
    const ended = { ...worker.end(vmId), end_reason: 'moved' };
    const { status } = await worker.ask(url(), 'POST', '/workers/w1/events', {
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ events: [ended] }),
    });
    expect(status).toBe(204);
    expect(await record(vmId)).toMatchObject({ state: 'destroyed', end_reason: 'drained' });
  });
});

describe('heartbeats', () => {
  test('make up for lost events', async () => {
    const [paused, ended] = [await harness.create(key), await harness.create(key)];
    worker.change(paused, { state: 'paused', cpu_seconds: 7 });
    worker.end(ended, 'max_lifetime');
    expect(await (await worker.heartbeat(url())).json()).toEqual({ destroy: [] });
    expect(await record(paused)).toMatchObject({ state: 'paused' });
    expect(await record(ended)).toMatchObject({ state: 'destroyed', end_reason: 'max_lifetime' });
  });

  test('of an unknown worker are 404 until it registers again', async () => {
    await harness.sql.query('truncate workers cascade');
    const answer = await worker.heartbeat(url());
    expect(answer.status).toBe(404);
    expect(await answer.json()).toMatchObject({ code: 'worker_not_registered' });
    expect((await worker.register(url())).status).toBe(200);
    expect((await worker.heartbeat(url())).status).toBe(200);
  });

  test('order the end of sandboxes that have ended in the ledger', async () => {
    const vmId = await harness.create(key);
    await harness.sql.query(
      `update sandboxes set state = 'destroyed', ended_at = now(), end_reason = 'deleted'`,
    );
    expect(await (await worker.heartbeat(url())).json()).toEqual({
      destroy: [{ vm_id: vmId, generation: 1, reason: 'deleted' }],
    });
  });

  test('end sandboxes that the worker has lost, but not those it may not have received yet', async () => {
    const vmId = await harness.create(key);
    worker.sandboxes.clear();
    await worker.heartbeat(url());
    expect(await record(vmId)).toMatchObject({ state: 'running' });
    await age();
    await worker.heartbeat(url());
    expect(await record(vmId)).toMatchObject({ state: 'destroyed', end_reason: 'worker_lost' });
  });

  test('bring a silent worker back into placement', async () => {
    await harness.sql.query(`update workers set heartbeat_at = now() - interval '1 minute'`);
    const create = () =>
      harness.call('POST', '/v1/sandboxes', { key, json: { template: 'standard' } });
    expect((await create()).status).toBe(503);
    await worker.heartbeat(url());
    expect((await create()).status).toBe(201);
  });
});

describe('registration', () => {
  test('of a restarted worker keeps the sandboxes that it still holds and ends the others', async () => {
    const [kept, lost] = [await harness.create(key), await harness.create(key)];
    await age();
    worker.sandboxes.delete(lost);
    const answer = await (await worker.register(url())).json();
    expect(answer).toMatchObject({ heartbeat_interval_ms: 5000, destroy: [] });
    expect(await record(kept)).toMatchObject({ state: 'running' });
    expect(await record(lost)).toMatchObject({ state: 'destroyed', end_reason: 'worker_lost' });
  });

  test('with a new address and certificate takes effect for the next request', async () => {
    const vmId = await harness.create(key);
    await worker.stop();
    await worker.start();
    await worker.register(url());
    const answer = await harness.call('POST', `/v1/sandboxes/${vmId}/exec`, {
      key,
      json: { command: 'x' },
    });
    expect(answer.status).toBe(200);
  });

  test('of another machine with the same id changes nothing, until the first one is silent', async () => {
    await worker.register(url(), { instance_id: 'first' });
    const vmId = await harness.create(key);
    const another = { instance_id: 'second', url: 'https://127.0.0.1:1', sandboxes: [] };
    const refused = await worker.register(url(), another);
    expect(refused.status).toBe(409);
    expect(await refused.json()).toMatchObject({ code: 'worker_id_in_use' });
    const late = await worker.heartbeat(url(), worker.id, { ...another, url: undefined });
    expect(late.status).toBe(404);
    expect(
      await harness.call('POST', `/v1/sandboxes/${vmId}/exec`, {
        key,
        json: { command: 'x' },
      }),
    ).toMatchObject({ status: 200 });
    const silentFor = (seconds: number) =>
      harness.sql.query('update workers set heartbeat_at = now() - make_interval(secs => $1)', [
        seconds,
      ]);
    // The first one still runs its sessions, which go on elsewhere once another has its id.
    await silentFor(WORKER_TIMES.sessionLeaseMs / 1000);
    expect((await worker.register(url(), another)).status).toBe(409);
    await silentFor(WORKER_TIMES.unreachableMs / 1000 + 1);
    expect((await worker.register(url(), another)).status).toBe(200);
    expect((await worker.heartbeat(url(), worker.id, { instance_id: 'first' })).status).toBe(404);
  });

  test('with a certificate that the worker does not present makes it unreachable', async () => {
    const impostor = await harness.addWorker('w2', (w) => {
      w.memoryMib = 256;
    });
    const vmId = await harness.create(key);
    await harness.sql.query(
      `update workers set certificate = (select certificate from workers where worker_id = 'w2')`,
    );
    expect(impostor.placed).toEqual([]);
    const answer = await harness.call('POST', `/v1/sandboxes/${vmId}/exec`, {
      key,
      json: { command: 'x' },
    });
    expect(answer).toMatchObject({ status: 503, body: { code: 'worker_unreachable' } });
  });
});

describe('runtime hosts', () => {
  const path = '/runtime-hosts/00000000-0000-4000-8000-000000000001';
  const report = {
    body: JSON.stringify({ name: 'r1:8444' }),
    headers: { 'content-type': 'application/json' },
  };
  const listed = async () => (await harness.sql.query('select name from runtime_hosts')).rows;

  test('are listed while they run, until they end in order', async () => {
    const runtime = new ComponentDouble('runtime', 'r1', CLUSTER_SECRET);
    for (let n = 0; n < 2; n += 1) {
      expect((await runtime.ask(url(), 'PUT', path, report)).status).toBe(204);
    }
    expect(await listed()).toEqual([{ name: 'r1:8444' }]);
    expect((await runtime.ask(url(), 'DELETE', path)).status).toBe(204);
    expect(await listed()).toEqual([]);
  });

  test('have one entry each, which no other can remove', async () => {
    const [first, other] = ['r1', 'r2'].map(
      (id) => new ComponentDouble('runtime', id, CLUSTER_SECRET),
    ) as [ComponentDouble, ComponentDouble];
    for (let n = 1; n <= 3; n += 1) {
      const next = path.replace(/1$/, String(n));
      expect((await first.ask(url(), 'PUT', next, report)).status).toBe(204);
    }
    expect((await other.ask(url(), 'DELETE', path)).status).toBe(204);
    expect(await listed()).toEqual([{ name: 'r1:8444' }]);
    expect((await first.ask(url(), 'DELETE', path)).status).toBe(204);
    expect(await listed()).toEqual([]);
  });

  test('are nobody else', async () => {
    expect((await worker.ask(url(), 'PUT', path, report)).status).toBe(401);
    expect((await worker.ask(url(), 'DELETE', path)).status).toBe(401);
    expect(await listed()).toEqual([]);
  });
});

describe('credentials', () => {
  const keyOf = (id: string) => new ComponentDouble('worker', id, CLUSTER_SECRET).key;
  const ROUTES = [
    ['POST', '/workers/register'],
    ['POST', '/workers/w1/heartbeat'],
    ['POST', '/workers/w1/events'],
    ['GET', '/sandboxes/vm_x/agent-secrets'],
    ['GET', '/sessions/x'],
    ['GET', '/sessions/x/state'],
    ['POST', '/sessions/x/turns'],
    ['GET', '/sessions/x/chunk-secret?generation=1'],
    ['POST', '/sessions/x/chunks/missing'],
    ['POST', '/sessions/x/chunks/uploads'],
    ['POST', '/sessions/x/chunks/uploaded'],
    ['POST', '/sessions/x/chunks/downloads'],
    ['GET', '/sessions/x/files/f'],
  ] as const;
  const send = (method: string, path: string, authorization?: string) =>
    fetch(`${url()}${INTERNAL_PREFIX}${path}`, {
      method,
      headers: {
        ...(method === 'GET' ? {} : { 'content-type': 'application/json' }),
        ...(authorization === undefined ? {} : { authorization }),
      },
      ...(method === 'GET' ? {} : { body: '{}' }),
    });
  const post = (path: string, authorization?: string) => send('POST', path, authorization);

  test('none, an API key, a session token, or a token of another cluster is 401', async () => {
    const other = createTokenMinter(await generateKeyPair(), 'w1');
    await harness.addBundle(key, 'llm', { LLM_API_KEY: 'k' });
    const { access } = await harness.startSession(key);
    for (const credential of [
      undefined,
      `Bearer ${key}`,
      `Bearer ${access.jwt}`,
      `Bearer ${await other(CONTROL_PLANE_NAME)}`,
    ]) {
      for (const [method, path] of ROUTES) {
        expect((await send(method, path, credential)).status, path).toBe(401);
      }
    }
  });

  test('a token for another audience is 401, one of another worker 403', async () => {
    const mint = createTokenMinter(await keyOf('w1'), 'w1');
    expect((await post('/workers/w1/events', `Bearer ${await mint('w2')}`)).status).toBe(401);
    const answer = await worker.heartbeat(url(), 'w2');
    expect(answer.status).toBe(403);
    expect(await answer.json()).toMatchObject({ code: 'worker_id_mismatch' });
    expect((await worker.register(url(), { worker_id: 'w2' })).status).toBe(403);
  });

  test('an internal token is not valid on public routes', async () => {
    const token = await createTokenMinter(await keyOf('w1'), 'w1')(CONTROL_PLANE_NAME);
    expect((await harness.call('GET', '/v1/sandboxes', { key: token })).status).toBe(401);
    expect((await harness.call('GET', '/v1/tenants/me', { key: token })).status).toBe(401);
  });
});
