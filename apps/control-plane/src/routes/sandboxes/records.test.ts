import { ServiceError } from '@svc/contract';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { Harness } from '../../../test/harness.ts';

let harness: Harness;
let key: string;

beforeAll(async () => {
  harness = await Harness.start();
  key = (await harness.signUp()).key;
});
afterAll(() => harness?.[Symbol.asyncDispose]());
beforeEach(() => harness.reset());

const list = () => harness.call('GET', '/v1/sandboxes', { key });
const get = (vmId: string) => harness.call('GET', `/v1/sandboxes/${vmId}`, { key });
const remove = (vmId: string) => harness.call('DELETE', `/v1/sandboxes/${vmId}`, { key });
const counters = async () =>
  (await harness.sql.query('select sum(reserved_memory_mib)::int as reserved from workers'))
    .rows[0];

describe('list', () => {
  test('without any worker is 503', async () => {
    expect(await list()).toMatchObject({ status: 503, body: { code: 'no_workers' } });
  });

  test('without any worker that was not removed is 503', async () => {
    await harness.addWorker('w1');
    expect(await list()).toMatchObject({ status: 200, text: '[]' });
    await harness.sql.query('update workers set removed_at = now()');
    expect(await list()).toMatchObject({ status: 503, body: { code: 'no_workers' } });
  });

  test('without any worker is 503, whatever there was before', async () => {
    await harness.addWorker('w1');
    await remove(await harness.create(key));
    expect(await list()).toMatchObject({ status: 200 });
    await harness.sql.query('update workers set removed_at = now()');
    expect(await list()).toMatchObject({ status: 503, body: { code: 'no_workers' } });
  });

  test("merges the caller's records of all workers", async () => {
    await harness.addWorker('w1', (w) => {
      w.memoryMib = 1024;
    });
    await harness.addWorker('w2', (w) => {
      w.memoryMib = 1024;
    });
    const ids = [await harness.create(key), await harness.create(key)];
    await harness.create((await harness.signUp()).key);
    const answer = await list();
    const records = JSON.parse(answer.text) as { vm_id: string }[];
    expect(records.map((record) => record.vm_id)).toEqual(ids);
  });

  test('shows the current reports of workers', async () => {
    const worker = await harness.addWorker('w1');
    const vmId = await harness.create(key);
    worker.change(vmId, { state: 'paused' });
    expect(JSON.parse((await list()).text)).toMatchObject([{ vm_id: vmId, state: 'paused' }]);
  });

  test('has pages in the order of the ids, each of which names the next one', async () => {
    const worker = await harness.addWorker('w1');
    const ids: string[] = [];
    for (let made = 0; made < 5; made += 1) ids.push(await harness.create(key));
    worker.end(ids[1] ?? '', 'deleted');
    await worker.heartbeat(harness.plane.url);
    await harness.create((await harness.signUp()).key);
    const pages: string[][] = [];
    let target: string | undefined = '/v1/sandboxes?limit=2';
    while (target !== undefined) {
      const page = await harness.call('GET', target, { key });
      pages.push((JSON.parse(page.text) as { vm_id: string }[]).map(({ vm_id }) => vm_id));
      target = /^<(.*)>; rel="next"$/.exec(page.headers.get('link') ?? '')?.[1];
    }
    const ordered = ids.toSorted();
    expect(pages).toEqual([ordered.slice(0, 2), ordered.slice(2, 4), ordered.slice(4)]);
    const rest = await harness.call('GET', `/v1/sandboxes?after=${ordered[2]}`, { key });
    expect(JSON.parse(rest.text)).toMatchObject(ordered.slice(3).map((vm_id) => ({ vm_id })));
    expect(rest.headers.get('link')).toBeNull();
    expect((await list()).headers.get('link')).toBeNull();
  });

  test('asks only the workers of the sandboxes on a page', async () => {
    await harness.addWorker('w1');
    const first = await harness.create(key);
    await harness.sql.query(`update workers set draining = true`);
    const away = await harness.addWorker('w2');
    await harness.create(key);
    await away.stop();
    const page = await harness.call('GET', '/v1/sandboxes?limit=1', { key });
    expect(JSON.parse(page.text)).toMatchObject([{ vm_id: first }]);
    const next = await harness.call('GET', `/v1/sandboxes?limit=1&after=${first}`, { key });
    expect(next.body).toMatchObject({ partial: true });
  });

  test.each(['limit=0', 'limit=101', 'limit=x', 'after=', 'after=%00'])(
    'refuses the query %s',
    async (query) => {
      const answer = await harness.call('GET', `/v1/sandboxes?${query}`, { key });
      expect(answer).toMatchObject({ status: 400, body: { code: 'validation_failed' } });
    },
  );

  test('is partial, with the last known records, when a worker with sandboxes of the caller does not answer', async () => {
    await harness.addWorker('idle', (w) => {
      w.memoryMib = 256;
    });
    const worker = await harness.addWorker('w1');
    const vmId = await harness.create(key);
    await worker.stop();
    expect((await list()).body).toMatchObject({
      partial: true,
      sandboxes: [{ vm_id: vmId, state: 'running' }],
    });
  });

  test('is partial immediately when the worker counts as unreachable', async () => {
    const worker = await harness.addWorker('w1');
    await harness.create(key);
    await harness.sql.query(`update workers set heartbeat_at = now() - interval '1 minute'`);
    worker.failures.set('list', 'internal_error');
    expect((await list()).body).toMatchObject({ partial: true });
  });

  test('tells, like a read, when the worker of a live sandbox was last heard of', async () => {
    await harness.addWorker('w1');
    const vmId = await harness.create(key);
    const { rows } = await harness.sql.query(
      `update workers set heartbeat_at = now() - interval '5 seconds' returning heartbeat_at`,
    );
    const last_seen_at = rows[0].heartbeat_at.toISOString();
    expect(JSON.parse((await list()).text)).toMatchObject([{ vm_id: vmId, last_seen_at }]);
    expect((await get(vmId)).body).toMatchObject({ last_seen_at });
    await remove(vmId);
    expect((await get(vmId)).body).not.toHaveProperty('last_seen_at');
  });

  test('is complete when a worker without sandboxes of the caller does not answer', async () => {
    const idle = await harness.addWorker('idle', (w) => {
      w.memoryMib = 256;
    });
    await harness.addWorker('w1');
    await harness.create(key);
    await idle.stop();
    expect(JSON.parse((await list()).text)).toHaveLength(1);
  });

  test('is 401 when a worker rejects the control plane', async () => {
    const worker = await harness.addWorker('w1');
    await harness.create(key);
    worker.failures.set('list', 'unauthorized');
    expect(await list()).toMatchObject({ status: 401, body: { code: 'unauthorized' } });
  });
});

describe('delete', () => {
  test('destroys, can be repeated while the record stays, then is 404', async () => {
    const worker = await harness.addWorker('w1');
    const vmId = await harness.create(key);
    const destroyed = { status: 200, body: { vm_id: vmId, state: 'destroyed' } };
    expect(await remove(vmId)).toMatchObject(destroyed);
    expect(worker.sandboxes.get(vmId)?.state).toBe('destroyed');
    expect(await remove(vmId)).toMatchObject(destroyed);
    expect((await get(vmId)).body).toMatchObject({ state: 'destroyed', end_reason: 'deleted' });
    expect(JSON.parse((await list()).text)).toMatchObject([{ vm_id: vmId, state: 'destroyed' }]);
    expect(await counters()).toEqual({ reserved: 0 });
    await harness.sql.query(
      `update sandboxes set ended_at = now() - interval '15 minutes 1 second'`,
    );
    expect((await remove(vmId)).status).toBe(404);
    expect((await get(vmId)).status).toBe(404);
    expect(JSON.parse((await list()).text)).toEqual([]);
  });

  test('leaves a record for 15 minutes after the end, whatever the clock of the worker', async () => {
    const worker = await harness.addWorker('w1');
    const vmId = await harness.create(key);
    await harness.sql.query(`update sandboxes set placed_at = now() - interval '1 hour'`);
    worker.end(vmId, 'idle_timeout');
    // It ended 13 minutes ago, and the clock is an hour behind.
    worker.change(vmId, {
      ended_at: new Date(Date.now() - (13 + 60) * 60_000).toISOString(),
      end_age_ms: 13 * 60_000,
    });
    await worker.heartbeat(harness.plane.url);
    expect((await get(vmId)).body).toMatchObject({ end_reason: 'idle_timeout' });
    await harness.sql.query(`update sandboxes set ended_at = ended_at - interval '2 minutes'`);
    expect((await get(vmId)).status).toBe(404);
  });

  test('works when the worker no longer has it', async () => {
    const worker = await harness.addWorker('w1');
    const vmId = await harness.create(key);
    worker.sandboxes.delete(vmId);
    expect((await remove(vmId)).status).toBe(200);
  });

  test.each(['paused', 'stopping', 'configuring'] as const)('works from %s', async (state) => {
    await harness.addWorker('w1');
    const vmId = await harness.create(key);
    await harness.sql.query('update sandboxes set state = $1', [state]);
    expect((await remove(vmId)).status).toBe(200);
  });

  test('works during creation, which then fails cleanly', async () => {
    const worker = await harness.addWorker('w1');
    let deleted: Promise<{ status: number }> | undefined;
    worker.beforeCreated = async ({ vm_id }) => {
      deleted = remove(vm_id);
      expect((await deleted).status).toBe(200);
    };
    const created = await harness.call('POST', '/v1/sandboxes', {
      key,
      json: { template: 'standard' },
    });
    expect(created).toMatchObject({ status: 409, body: { code: 'sandbox_deleted' } });
    expect([...worker.sandboxes.values()].map((sandbox) => sandbox.state)).toEqual(['destroyed']);
    expect(await counters()).toEqual({ reserved: 0 });
  });

  test('works during creation, when the worker cancels the creation', async () => {
    const worker = await harness.addWorker('w1');
    const destroying = Promise.withResolvers<void>();
    const failed = Promise.withResolvers<void>();
    worker.beforeDestroyed = async () => {
      destroying.resolve();
      await failed.promise;
    };
    const ids: string[] = [];
    let deleted: ReturnType<typeof remove> | undefined;
    worker.beforeCreated = async ({ vm_id }) => {
      ids.push(vm_id);
      deleted = remove(vm_id);
      await destroying.promise;
      throw new ServiceError('sandbox_not_running');
    };
    const creating = harness.call('POST', '/v1/sandboxes', { key, json: { template: 'standard' } });
    await destroying.promise;
    await expect
      .poll(async () => (await harness.sql.query('select state from sandboxes')).rows)
      .toEqual([{ state: 'destroyed' }]);
    failed.resolve();
    expect(await creating).toMatchObject({ status: 409, body: { code: 'sandbox_deleted' } });
    expect(await deleted).toMatchObject({ status: 200 });
    expect((await get(String(ids[0]))).body).toMatchObject({ end_reason: 'deleted' });
    expect(await counters()).toEqual({ reserved: 0 });
  });

  test('is 503 when the worker does not answer, and takes effect when it is back', async () => {
    const worker = await harness.addWorker('w1');
    const vmId = await harness.create(key);
    worker.failures.set('destroy', 'shutting_down');
    expect(await remove(vmId)).toMatchObject({ status: 503, body: { code: 'worker_unreachable' } });
    expect((await get(vmId)).body.state).toBe('running');
    const answer = await (await worker.heartbeat(harness.plane.url)).json();
    expect(answer).toEqual({ destroy: [{ vm_id: vmId, generation: 1, reason: 'deleted' }] });
  });

  test('waits for the last save of a workspace', async () => {
    const worker = await harness.addWorker('w1');
    const workspace = { workspace_enabled: true, app_id: 'a', capset_id: 'c' };
    const vmId = await harness.create(key, workspace);
    const saving = Promise.withResolvers<void>();
    const saved = Promise.withResolvers<void>();
    worker.beforeDestroyed = async () => {
      saving.resolve();
      await saved.promise;
    };
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    try {
      const deleted = remove(vmId);
      await saving.promise;
      // The worker tries for up to five minutes.
      vi.advanceTimersByTime(4 * 60_000);
      saved.resolve();
      expect(await deleted).toMatchObject({ status: 200, body: { state: 'destroyed' } });
    } finally {
      vi.useRealTimers();
    }
  });

  test('counts as done when the worker falls silent meanwhile', async () => {
    const worker = await harness.addWorker('w1');
    const vmId = await harness.create(key);
    const saving = Promise.withResolvers<void>();
    const ended = Promise.withResolvers<void>();
    worker.beforeDestroyed = async () => {
      saving.resolve();
      await ended.promise;
    };
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    try {
      const deleted = remove(vmId);
      await saving.promise;
      await harness.sql.query(`update workers set heartbeat_at = now() - interval '1 minute'`);
      let status: number | undefined;
      void deleted.then((answer) => {
        status = answer.status;
      });
      const look = () => {
        vi.advanceTimersByTime(5_000);
        return status;
      };
      await expect.poll(look).toBe(200);
    } finally {
      vi.useRealTimers();
      ended.resolve();
    }
  });

  test('counts as done when the worker counts as unreachable', async () => {
    const worker = await harness.addWorker('w1');
    const vmId = await harness.create(key);
    await worker.stop();
    await harness.sql.query(`update workers set heartbeat_at = now() - interval '1 minute'`);
    expect((await remove(vmId)).status).toBe(200);
    await worker.start();
    const answer = await (await worker.register(harness.plane.url)).json();
    expect(answer).toMatchObject({ destroy: [{ vm_id: vmId }] });
  });
});
