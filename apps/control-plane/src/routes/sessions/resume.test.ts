import { LIMITS } from '@svc/contract';
import { SessionTokens, sessionTokenKey } from '@svc/service-kit';
import type { WorkerDouble } from '@svc/worker-double';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { CLUSTER_SECRET, Harness } from '../../../test/harness.ts';

const SECRETS = '/v1/tenants/me/secrets';

let harness: Harness;
let account: Awaited<ReturnType<Harness['signUp']>>;
let worker: WorkerDouble;
let key: string;

beforeAll(async () => {
  harness = await Harness.start({ SVC_EGRESS_ALLOW_HOSTS: 'llm.internal:8443' });
  account = await harness.signUp();
  key = account.key;
});
afterAll(() => harness?.[Symbol.asyncDispose]());
beforeEach(async () => {
  await harness.reset();
  await harness.sql.query('truncate secret_bundles');
  await harness.addBundle(key, 'llm', { LLM_API_KEY: 'key-1' });
  worker = await harness.addWorker('w1');
});

const resume = (id: unknown, changes: object = {}, as = key) =>
  harness.call('POST', '/v1/sessions/resume', {
    key: as,
    json: { chat_session_id: id, ...changes },
  });
const remove = (id: string) => harness.call('DELETE', `/v1/sessions/${id}`, { key });
const rotate = (name: string, values: object) =>
  harness.call('PUT', `${SECRETS}/${name}`, { key, json: { values } });

/** Values of which one bundle may have as many as a session, but not two. */
const full = (prefix: string) =>
  Object.fromEntries(
    Array.from({ length: 40 }, (_, n) => [prefix + n, 'x'.repeat(LIMITS.secretValueBytes)]),
  );

describe('a resumed session', () => {
  test('runs on a new sandbox, under its id and the next generation', async () => {
    const first = await harness.startSession(key, { app: { id: 'mine', set_id: 's' } });
    await remove(first.id);
    const { status, body } = await resume(first.id, { ttl_seconds: 60 });
    expect(status).toBe(200);
    expect(body).toMatchObject({
      chat_session_id: first.id,
      connect_url: first.access.connect_url,
      resumed_from: { previous_status: 'completed' },
    });
    expect(Date.parse(String(body.expires_at)) - Date.now()).toBeLessThanOrEqual(60_000);
    const claims = await new SessionTokens([sessionTokenKey(CLUSTER_SECRET)]).verify(
      String(body.jwt),
    );
    expect(claims).toMatchObject({ chat_session_id: first.id, app_id: 'mine', set_id: 's' });
    const session = await harness.session(key, first.id);
    expect(session).toMatchObject({ status: 'active', vm_id: worker.placed[1]?.vm_id });
    expect(session).not.toHaveProperty('ended_at');
    expect(session.vm_id).not.toBe(first.vmId);
    expect(worker.placed[1]).toMatchObject({
      placement: {
        max_lifetime_seconds: 60,
        agent: { session: { chat_session_id: first.id, generation: 2, resumed: true } },
      },
    });
  });

  test.each([
    ['max_lifetime', 'expired'],
    ['worker_lost', 'failed'],
  ] as const)('says what it was: %s, %s', async (reason, previous_status) => {
    const { id, vmId } = await harness.startSession(key);
    await worker.event(harness.plane.url, worker.end(vmId, reason));
    expect((await resume(id)).body.resumed_from).toEqual({ previous_status });
  });

  test('has the status it had when its caller leaves before the answer', async () => {
    const { id, vmId } = await harness.startSession(key);
    await worker.event(harness.plane.url, worker.end(vmId, 'max_lifetime'));
    const before = await harness.session(key, id);
    expect(before).toMatchObject({ status: 'expired', vm_id: vmId });
    const call = { key, json: { chat_session_id: id } };
    await harness.leaveBeforeAnswer(worker, '/v1/sessions/resume', call);
    const resumed = worker.placed[1]?.vm_id ?? '';
    await expect.poll(() => worker.sandboxes.get(resumed)?.state).toBe('destroyed');
    await expect.poll(() => harness.session(key, id)).toEqual(before);
  });

  test('is stopped gracefully first when active, with time to save', async () => {
    const { id, vmId } = await harness.startSession(key);
    let generationAtEnd: unknown;
    worker.beforeDestroyed = async () => {
      const turn = { generation: 1, vm_id: vmId, first_seq: 1, last_seq: 1, frames: '{"seq":1}\n' };
      const answer = await worker.ask(harness.plane.url, 'POST', `/sessions/${id}/turns`, {
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(turn),
      });
      expect(answer.status).toBe(204);
      generationAtEnd = worker.placed.length;
    };
    const { status, body } = await resume(id);
    expect(status).toBe(200);
    expect(generationAtEnd).toBe(1);
    expect(body.resumed_from).toEqual({ previous_status: 'active' });
    expect(worker.sandboxes.get(vmId)?.state).toBe('destroyed');
    expect(await harness.session(key, id)).toMatchObject({ status: 'active' });
    const { rows } = await harness.sql.query('select last_seq, generation from sessions');
    expect(rows).toEqual([{ last_seq: '1', generation: 2 }]);
  });

  test('two concurrent resumes: one wins, the other is refused', async () => {
    const { id } = await harness.startSession(key);
    await remove(id);
    const entered = Promise.withResolvers<void>();
    const release = Promise.withResolvers<void>();
    worker.beforeCreated = async () => {
      entered.resolve();
      await release.promise;
    };
    const winner = resume(id);
    await entered.promise;
    const loser = await resume(id);
    expect(loser).toMatchObject({ status: 409, body: { code: 'session_starting' } });
    expect(await remove(id)).toMatchObject({ status: 409, body: { code: 'session_starting' } });
    release.resolve();
    expect((await winner).status).toBe(200);
    expect(worker.placed).toHaveLength(2);
  });

  test('ten concurrent resumes leave exactly one sandbox', async () => {
    const { id } = await harness.startSession(key);
    await remove(id);
    const answers = await Promise.all(Array.from({ length: 10 }, () => resume(id)));
    const statuses = answers.map((answer) => answer.status);
    expect(statuses).toContain(200);
    for (const status of statuses) expect([200, 409]).toContain(status);
    const alive = await harness.sql.query(`select vm_id from sandboxes where state <> 'destroyed'`);
    expect(alive.rows).toEqual([{ vm_id: (await harness.session(key, id)).vm_id }]);
  });

  test('keeps its size', async () => {
    const size = { vcpu: 2, memory_mib: 2048, disk_mib: 6000 };
    const { id } = await harness.startSession(key, size);
    await remove(id);
    expect((await resume(id)).status).toBe(200);
    expect(worker.placed.map(({ placement }) => placement.size)).toEqual([size, size]);
  });

  test('gets the current values of its bundles', async () => {
    const { id } = await harness.startSession(key);
    await remove(id);
    await rotate('llm', { LLM_API_KEY: 'key-2', LLM_MODEL: 'model-2' });
    await resume(id);
    const vmId = String((await harness.session(key, id)).vm_id);
    const answer = await worker.ask(harness.plane.url, 'GET', `/sandboxes/${vmId}/agent-secrets`);
    expect(await answer.json()).toMatchObject({ llm: { api_key: 'key-2' } });
    expect(worker.placed[1]?.placement.agent).toMatchObject({ model: 'model-2' });
  });
});

describe('a resume is refused', () => {
  test('for a session of another tenant, which only the owner learns of', async () => {
    const { id } = await harness.startSession(key);
    const stranger = await harness.signUp();
    const answer = await resume(id, {}, stranger.key);
    expect(answer).toMatchObject({ status: 403, body: { code: 'session_of_another_tenant' } });
    const auditOf = async (token: string) =>
      (await harness.call('GET', '/v1/audit', { key: token })).text;
    const denied = {
      event: 'cross_tenant_resume_denied',
      details: { chat_session_id: id, owner_tenant_id: account.tenantId, count: 1 },
    };
    expect(JSON.parse(await auditOf(account.token)).entries).toContainEqual(
      expect.objectContaining(denied),
    );
    const shownToStranger = [
      answer.text,
      JSON.stringify([...answer.headers]),
      await auditOf(stranger.token),
    ].join();
    for (const fact of [account.tenantId, account.email, 'cross_tenant_resume_denied']) {
      expect(shownToStranger).not.toContain(fact);
    }
    expect(await auditOf(account.token)).not.toContain(stranger.tenantId);
    // Operators need both sides.
    const logged = harness.logLines.find((line) => line.includes('cross_tenant_resume_denied'));
    expect(logged).toContain(stranger.tenantId);
    expect(await harness.session(key, id)).toMatchObject({ status: 'active' });
  });

  test('as often as a stranger asks, with one record of the owner and one line of the log', async () => {
    const { id } = await harness.startSession(key);
    const stranger = await harness.signUp();
    for (let tries = 0; tries < 5; tries += 1) await resume(id, {}, stranger.key);
    const { body } = await harness.call('GET', '/v1/audit', { key: account.token });
    const denials = (body as { entries: { event: string; details: object }[] }).entries.filter(
      ({ details }) => 'chat_session_id' in details && details.chat_session_id === id,
    );
    expect(denials).toMatchObject([{ event: 'cross_tenant_resume_denied', details: { count: 5 } }]);
    const lines = harness.logLines.filter(
      (line) => line.includes('cross_tenant_resume_denied') && line.includes(id),
    );
    // The five may take longer than a minute.
    expect(lines.length).toBeLessThan(4);
  });

  test.each(['none', 'a\0', '00000000-0000-7000-8000-000000000000'])(
    'for %j, which does not exist',
    async (id) => {
      expect(await resume(id)).toMatchObject({ status: 404, body: { code: 'session_not_found' } });
    },
  );

  test.each([[undefined], [null], [''], [7]])('for the id %j', async (id) => {
    expect(await resume(id)).toMatchObject({ status: 400, body: { code: 'validation_failed' } });
  });

  test('when a bundle was deleted, and a running session continues', async () => {
    const { id } = await harness.startSession(key);
    await harness.call('DELETE', `${SECRETS}/llm`, { key });
    expect(await resume(id)).toMatchObject({
      status: 502,
      body: { code: 'secret_bundle_not_found_at_resume' },
    });
    expect(await harness.session(key, id)).toMatchObject({ status: 'active' });
    await harness.addBundle(key, 'llm', { LLM_API_KEY: 'again' });
    expect((await resume(id)).status).toBe(200);
  });

  test('when rotated bundles break a rule', async () => {
    await harness.addBundle(key, 'extra', { A: '1' });
    const { id } = await harness.startSession(key, { secrets: ['llm', 'extra'] });
    await remove(id);
    await rotate('extra', { LLM_API_KEY: 'two' });
    expect((await resume(id)).body.code).toBe('secret_key_collision');
    await rotate('llm', {});
    await rotate('extra', {});
    expect((await resume(id)).body.code).toBe('llm_api_key_missing');
    await rotate('llm', { LLM_API_KEY: 'k', LLM_MODEL: 'no model' });
    expect((await resume(id)).body.code).toBe('llm_model_invalid');
    await rotate('llm', { LLM_API_KEY: 'k', ...full('A') });
    await rotate('extra', full('B'));
    expect((await resume(id)).body.code).toBe('secrets_too_large');
  });

  test('when its endpoint is no longer allowed', async () => {
    const base_url = 'https://llm.internal:8443/v1';
    const { id } = await harness.startSession(key, { llm: { vendor: 'openai', base_url } });
    await remove(id);
    expect((await resume(id)).status).toBe(200);
    const strict = await harness.startAnother({ SVC_EGRESS_ALLOW_HOSTS: '' });
    const answer = await harness.call('POST', '/v1/sessions/resume', {
      key,
      json: { chat_session_id: id },
      plane: strict,
    });
    await strict.close();
    expect(answer).toMatchObject({ status: 400, body: { code: 'llm_base_url_refused' } });
  });

  test.each([
    ['no_capacity', 409],
    ['guest_unresponsive', 502],
  ] as const)('with %s, and the session stays as it was', async (failure, status) => {
    const { id } = await harness.startSession(key);
    await remove(id);
    const before = await harness.session(key, id);
    worker.failures.set('create', failure);
    expect(await resume(id)).toMatchObject({ status, body: { code: failure } });
    expect(await harness.session(key, id)).toEqual(before);
    worker.failures.clear();
    expect((await resume(id)).status).toBe(200);
  });

  test('when the object store with its conversation cannot be reached, and stops nothing', async () => {
    const { id, vmId } = await harness.startSession(key);
    await harness.sql.query(
      `insert into session_chunks (session_id, chunk_id, object_key, stored_bytes, stored_at, unused_since,
         of_transcript) values ($1, sha256('c'), 'sessions/' || $2 || '/c', 1, now(), null, true)`,
      [id, id],
    );
    const plane = await harness.startAnother({
      SVC_S3_ENDPOINT: 'http://127.0.0.1:1',
      SVC_S3_REGION: 'r',
      SVC_S3_BUCKET: 'bucket',
      SVC_S3_ACCESS_KEY_ID: 'id',
      SVC_S3_SECRET_ACCESS_KEY: 'secret',
    });
    try {
      const json = { chat_session_id: id };
      const answer = await harness.call('POST', '/v1/sessions/resume', { key, json, plane });
      expect(answer).toMatchObject({ status: 503, body: { code: 'object_store_unavailable' } });
      expect(await harness.session(key, id)).toMatchObject({ status: 'active', vm_id: vmId });
    } finally {
      await plane.close();
    }
    expect((await resume(id)).status).toBe(200);
  });

  test('when the worker of its old sandbox does not answer', async () => {
    const { id } = await harness.startSession(key);
    worker.failures.set('destroy', 'shutting_down');
    expect(await resume(id)).toMatchObject({ status: 503, body: { code: 'worker_unreachable' } });
    worker.failures.clear();
    expect((await resume(id)).status).toBe(200);
  });

  test('and marks the session failed when the sandbox does not boot', async () => {
    const { id } = await harness.startSession(key);
    await remove(id);
    worker.failures.set('create', 'boot_failed');
    expect(await resume(id)).toMatchObject({ status: 500, body: { code: 'boot_failed' } });
    expect(await harness.session(key, id)).toMatchObject({ status: 'failed' });
  });
});
