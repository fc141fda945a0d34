import { readFile } from 'node:fs/promises';
import { loadConfig } from '@svc/config';
import { ERRORS } from '@svc/contract';
import { createLogger, ensureLocalTls, NO_DRAIN } from '@svc/service-kit';
import { startTestServer } from '@svc/store/testing';
import { Agent, request } from 'undici';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CLUSTER_SECRET, Harness } from '../../../test/harness.ts';
import { publicRoutes } from '../../app.ts';
import { ClusterSecrets } from '../../crypto/cluster-secrets.ts';
import { startControlPlane } from '../../index.ts';

let harness: Harness;

beforeAll(async () => {
  harness = await Harness.start();
});
afterAll(() => harness?.[Symbol.asyncDispose]());

describe('the document', () => {
  // every-route.test.ts compares them with docs/routes.md.
  test('is OpenAPI 3.1 and names every public route and no internal one', async () => {
    const check = await harness.openapi();
    expect(check.document.openapi).toBe('3.1.0');
    const operations = check.operations();
    expect(operations).toHaveLength(publicRoutes.length);
    expect(operations.filter((operation) => operation.includes('internal'))).toEqual([]);
  });

  test('names its components, and gives every operation an id, a summary and problems', async () => {
    const { document } = await harness.openapi();
    const { components, paths } = document as {
      components: { schemas: object };
      paths: Record<
        string,
        Record<string, { operationId: string; summary: string; responses: object }>
      >;
    };
    const names = Object.keys(components.schemas);
    expect(names).toEqual(
      expect.arrayContaining([
        'Sandbox',
        'CreateSandboxRequest',
        'Problem',
        'Tenant',
        'ExecResponse',
      ]),
    );
    expect(names.filter((name) => name.startsWith('def-'))).toEqual([]);
    const operations = Object.values(paths).flatMap((item) => Object.values(item));
    const ids = operations.map((operation) => operation.operationId);
    expect(new Set(ids).size).toBe(ids.length);
    for (const operation of operations) {
      expect(operation.summary).toBeTruthy();
      expect(Object.keys(operation.responses)).toEqual(expect.arrayContaining(['500', '503']));
    }
  });

  test('documents the body of uploads and the header of keys', async () => {
    const text = JSON.stringify((await harness.openapi()).document);
    expect(text).toContain('application/octet-stream');
    expect(text.toLowerCase()).toContain('idempotency-key');
    expect(text).toContain('text/event-stream');
  });

  test('marks optional bodies, and does not contain internal keywords', async () => {
    const { paths } = (await harness.openapi()).document as {
      paths: Record<string, { post?: { requestBody?: { required: boolean } } }>;
    };
    expect(paths['/v1/sandboxes/{id}/cancel']?.post?.requestBody?.required).toBe(false);
    expect(paths['/v1/sandboxes']?.post?.requestBody?.required).toBe(true);
    expect(JSON.stringify(paths)).not.toMatch(
      /x-error-code|x-optional-body|x-max-bytes|Default Response/,
    );
  });

  test('names only codes of the catalogue', async () => {
    const text = JSON.stringify((await harness.openapi()).document.paths);
    const codes = [...text.matchAll(/`([a-z0-9_]+)`: /g)].map((match) => match[1] ?? '');
    expect(codes.length).toBeGreaterThan(50);
    for (const code of codes) expect(ERRORS).toHaveProperty(code);
  });
});

describe('the reference page', () => {
  test('shows every operation and loads nothing else', async () => {
    const { text, headers } = await harness.call('GET', '/docs');
    expect(headers.get('content-security-policy')).toContain("default-src 'none'");
    expect(text).not.toMatch(/<script|<link|<img|src=|url\(|@import/);
    for (const operation of (await harness.openapi()).operations())
      expect(text).toContain(operation);
  });
});

describe('health', () => {
  test('reports liveness, readiness and metrics', async () => {
    expect((await harness.call('GET', '/healthz')).body).toEqual({ status: 'ok' });
    expect((await harness.call('GET', '/readyz')).body).toEqual({ status: 'ready' });
    const { text } = await harness.call('GET', '/metrics');
    expect(text).toContain('svc_control_plane_http_request_duration_seconds_count');
    expect(text).toContain('svc_sandboxes{state="running"} 0');
    expect(text).toContain('svc_workers{reachable="true"} 0');
  });

  test('shows what an operator is paged for', async () => {
    await using own = await Harness.start();
    const { key } = await own.signUp();
    const none = await own.call('POST', '/v1/sandboxes', { key, json: { template: 'standard' } });
    expect(none.body).toMatchObject({ code: 'no_workers' });
    await own.addWorker('w1');
    const vmId = await own.create(key);
    await own.addWorker('w2');
    await own.sql.query(
      `update workers set heartbeat_at = now() - interval '90 s' where worker_id = 'w2'`,
    );
    await own.sql.query(
      `update sandboxes set state = 'destroyed', end_reason = 'worker_lost',
        ended_at = now() - interval '4 min' where vm_id = $1`,
      [vmId],
    );
    const metrics = await own.metrics();
    expect(metrics).toMatchObject({
      svc_database_up: 1,
      'svc_database_wait_seconds_count{pool="customers"}': expect.any(Number),
      'svc_control_plane_problems_total{code="no_workers"}': 1,
      'svc_workers{reachable="true"}': 1,
      'svc_workers{reachable="false"}': 1,
      'svc_sandboxes_ended_recently{reason="worker_lost"}': 1,
      'svc_sandboxes_ended_recently{reason="deleted"}': 0,
    });
    expect(metrics.svc_workers_oldest_heartbeat_seconds).toBeGreaterThanOrEqual(90);
    await own.sql.query(`update sandboxes set ended_at = now() - interval '6 min'`);
    expect(await own.metrics()).toHaveProperty(
      ['svc_sandboxes_ended_recently{reason="worker_lost"}'],
      0,
    );
  });

  test('unknown routes are 404, known ones with another method 405', async () => {
    expect(await harness.call('GET', '/v1/nothing')).toMatchObject({
      status: 404,
      body: { code: 'route_not_found' },
    });
    const other = await harness.call('PUT', '/v1/sandboxes');
    expect(other).toMatchObject({ status: 405, body: { code: 'method_not_allowed' } });
    expect(other.headers.get('allow')).toContain('POST');
  });
});

describe('without its database', () => {
  test('every route that needs it is 503, and recovers automatically', async () => {
    const postgres = await startTestServer();
    await using own = await Harness.start({}, { postgres });
    const { key } = await own.signUp();
    await own.addWorker('w1');
    const vmId = await own.create(key);
    await own.sql.end();
    await postgres.stop();
    const paths: [string, string, object][] = [
      ['GET', '/readyz', {}],
      ['GET', `/v1/sandboxes/${vmId}`, { key }],
      ['GET', '/v1/sandboxes', { key }],
      ['POST', '/v1/sandboxes', { key, json: { template: 'standard' } }],
      ['POST', '/v1/tenants', { json: { email: 'a@example.com' } }],
      ['POST', '/v1/tenants/verify', { json: { email: 'a@example.com', code: '123456' } }],
    ];
    for (const [method, path, call] of paths) {
      const answer = await own.call(method, path, call);
      expect(answer, path).toMatchObject({ status: 503, body: { code: 'database_unavailable' } });
      expect(answer.headers.get('retry-after')).toBe('1');
    }
    expect((await own.call('GET', '/healthz')).status).toBe(200);
    expect(await own.metrics()).toMatchObject({ svc_database_up: 0 });
    await postgres.start();
    await expect.poll(async () => (await own.call('GET', '/readyz')).status).toBe(200);
    expect(await own.metrics()).toMatchObject({ svc_database_up: 1 });
    expect((await own.call('GET', `/v1/sandboxes/${vmId}`, { key })).status).toBe(200);
  });
});

describe('TLS and shutdown', () => {
  test('a running command does not prevent the control plane from closing', async () => {
    await using own = await Harness.start({ SVC_LISTEN: 'localhost:0' });
    const { key } = await own.signUp();
    const worker = await own.addWorker('w1');
    const vmId = await own.create(key);
    const exec = own.call('POST', `/v1/sandboxes/${vmId}/exec`, { key, json: { command: 'hang' } });
    const outcome = expect(exec).rejects.toThrow();
    await expect.poll(() => worker.busy).toBe(1);
    await own.plane.close();
    await outcome;
    await expect.poll(() => worker.aborted).toEqual([vmId]);
  });

  test('a drain lets a create end, and refuses another where workers are still served', async () => {
    await using own = await Harness.start();
    const { key } = await own.signUp();
    const worker = await own.addWorker('w1');
    const begun = Promise.withResolvers<void>();
    const released = Promise.withResolvers<void>();
    // The worker waits for its requests when it stops.
    using _release = { [Symbol.dispose]: () => released.resolve() };
    worker.beforeCreated = async () => {
      begun.resolve();
      await released.promise;
    };
    const json = { template: 'standard' };
    const create = own.call('POST', '/v1/sandboxes', { key, json });
    await begun.promise;
    const times = { noticeMs: 0, workMs: 60_000 };
    const drained = own.plane.drain(times, new AbortController().signal);

    for (const [method, path] of [
      ['GET', '/readyz'],
      ['POST', '/v1/sandboxes'],
      ['POST', '/v1/sessions'],
    ] as const) {
      const refused = await own.call(method, path, method === 'GET' ? {} : { key, json });
      expect(refused, path).toMatchObject({ status: 503, body: { code: 'shutting_down' } });
      expect(refused.headers.get('retry-after')).toBe('1');
      expect(refused.headers.get('connection')).toBe('close');
    }
    expect((await own.call('GET', '/healthz')).status).toBe(200);
    expect((await worker.heartbeat(own.plane.url)).status).toBe(200);
    released.resolve();
    expect((await create).status).toBe(201);
    await drained;
  });

  test('serves HTTPS, refuses public requests first, and closes', async () => {
    const tls = await ensureLocalTls({ directory: `${harness.dataDir}/tls` });
    const plane = await startControlPlane({
      config: loadConfig({ SVC_DATA_DIR: harness.dataDir, SVC_LISTEN: 'localhost:0' }),
      logger: createLogger({ level: 'silent' }),
      clusterSecrets: await ClusterSecrets.open([CLUSTER_SECRET]),
      tls,
      database: { url: harness.postgres.url, close: async () => undefined },
    });
    expect(plane.url).toMatch(/^https:\/\/localhost:\d+$/);
    const agent = new Agent({ connect: { ca: await readFile(tls.caFile, 'utf8') } });
    const get = async (path: string) => {
      const { statusCode, body } = await request(plane.url + path, { dispatcher: agent });
      return { statusCode, body: (await body.json()) as { code?: string } };
    };
    expect(await get('/healthz')).toMatchObject({ statusCode: 200 });
    await plane.drain(NO_DRAIN, new AbortController().signal);
    expect(await get('/v1/sandboxes')).toMatchObject({
      statusCode: 503,
      body: { code: 'shutting_down' },
    });
    const internal = await request(`${plane.url}/internal/v1/workers/w/events`, {
      method: 'POST',
      dispatcher: agent,
    });
    expect(internal.statusCode).toBe(401);
    await internal.body.dump();
    await Promise.all([plane.close(), plane.close()]);
    await expect(get('/healthz')).rejects.toThrow();
    await agent.close();
  });
});
