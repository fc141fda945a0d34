import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { INTERNAL_PREFIX, type Problem, ServiceError } from '@svc/contract';
import { Registry } from 'prom-client';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { OtlpCollector } from '../../test/index.ts';
import { createLogger } from '../logging/index.ts';
import { Secret } from '../secret.ts';
import {
  callHeaders,
  currentOrigin,
  inSpan,
  openTracing,
  type TraceOrigin,
  type Tracing,
  type TracingOptions,
  trustCaller,
} from '../tracing/index.ts';
import { routeUpgrades, WebSocketEndpoint } from '../websocket/index.ts';
import { createHttpServer, type HttpServer } from './server.ts';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const SPAN = '00f067aa0ba902b7';
const CANARY = 'canary';

let collector: OtlpCollector;
let tracing: Tracing | undefined;
let app: HttpServer;
let lines: Record<string, unknown>[];
let registry: Registry;
let origin: TraceOrigin | undefined;

beforeEach(async () => {
  collector = await OtlpCollector.start();
});

afterEach(async () => {
  await app.close();
  await tracing?.close();
  await collector[Symbol.asyncDispose]();
});

/** A server with tracing, whose routes show what they know of their request. */
async function serve(options: Partial<TracingOptions> = {}): Promise<void> {
  lines = [];
  registry = new Registry();
  const logger = createLogger({
    level: 'debug',
    pretty: false,
    destination: { write: (line) => void lines.push(JSON.parse(line)) },
  });
  tracing = await openTracing({
    endpoint: collector.url,
    headers: { 'x-collector-key': new Secret(CANARY) },
    ratio: 1,
    component: 'control-plane',
    instance: 'one',
    logger,
    registry,
    ...options,
    bounds: { delayMs: 10, exportMs: 30_000, closeMs: 30_000, ...options.bounds },
  });
  app = createHttpServer({
    logger,
    caller: () => ({ tenant_id: 'usr_1' }),
    tracing: tracing && {
      tracing,
      isFromOutside: ({ routeOptions }) => routeOptions.url?.startsWith('/v1/') === true,
    },
  });
  app.addHook('onRequest', async ({ headers }) => {
    if (headers.authorization === 'Bearer component') trustCaller();
  });
  const calls = () =>
    inSpan({ name: 'worker POST /things', kind: 'client' }, async () => {
      logger.info('from deep within');
      return callHeaders();
    });
  app.get('/v1/things/:id', calls);
  app.post('/v1/things', calls);
  app.get(`${INTERNAL_PREFIX}/things/:id`, calls);
  app.get('/healthz', calls);
  app.get('/v1/origin', async () => {
    origin = currentOrigin();
    return {};
  });
  app.get('/v1/refused', () => {
    throw new ServiceError('no_capacity', `not with ${CANARY}`);
  });
  app.get('/v1/broken', () =>
    inSpan({ name: 'worker GET /broken', kind: 'client' }, async () => {
      throw new Error(`the reason is ${CANARY}`);
    }),
  );
}

/** What the collector got, once the exporter has nothing left. */
async function spans() {
  await tracing?.close();
  return collector.spans;
}

const sampled = { traceparent: `00-${TRACE}-${SPAN}-01`, 'x-request-id': 'r-1' };
const notSampled = { traceparent: `00-${TRACE}-${SPAN}-00` };
const component = { authorization: 'Bearer component' };

describe('a request from outside', () => {
  it('continues the trace of its client, down to the calls that it makes', async () => {
    await serve();
    const answer = await app.inject({
      url: `/v1/things/forty-two?token=${CANARY}`,
      headers: { ...sampled, authorization: `Bearer ${CANARY}` },
    });
    const [call, served] = await spans();
    expect(served).toMatchObject({
      name: 'GET /v1/things/:id',
      kind: 'SERVER',
      traceId: TRACE,
      parentSpanId: SPAN,
      isFailed: false,
      attributes: {
        'http.request.method': 'GET',
        'http.route': '/v1/things/:id',
        'http.response.status_code': 200,
        'svc.request_id': 'r-1',
        'svc.tenant_id': 'usr_1',
      },
      resource: {
        'service.name': 'svc-control-plane',
        'service.instance.id': 'one',
        'service.namespace': 'svc',
      },
    });
    expect(call).toMatchObject({
      name: 'worker POST /things',
      kind: 'CLIENT',
      traceId: TRACE,
      parentSpanId: served?.spanId,
    });
    expect(answer.json()).toEqual({
      'x-request-id': 'r-1',
      traceparent: `00-${TRACE}-${call?.spanId}-01`,
    });
    expect(collector.headers[0]?.['x-collector-key']).toBe(CANARY);
    expect(collector.bodies.join()).not.toMatch(/canary|forty-two/);
  });

  it('begins a trace without a client that has one', async () => {
    await serve();
    await app.inject('/v1/things/1');
    const [call, served] = await spans();
    expect(served?.parentSpanId).toBeUndefined();
    expect(call?.traceId).toBe(served?.traceId);
  });

  it.each([
    ['is not recorded because its client wants it to be', 0, sampled, 0],
    ['is recorded although its client does not want it to be', 1, notSampled, 2],
  ])('%s', async (_what, ratio, headers, count) => {
    await serve({ ratio });
    await app.inject({ url: '/v1/things/1', headers });
    expect(await spans()).toHaveLength(count);
  });

  it('is recorded at the ratio, whatever trace id its client chooses', async () => {
    await serve({ ratio: 0.5 });
    for (let index = 0; index < 200; index += 1) {
      await app.inject({ url: '/v1/origin', headers: sampled });
    }
    const { length } = await spans();
    // The chance of fewer or more is below one in a billion.
    expect(length).toBeGreaterThan(55);
    expect(length).toBeLessThan(145);
  });

  it('passes only its id on when it is not recorded', async () => {
    await serve({ ratio: 0 });
    const answer = await app.inject({ url: '/v1/things/1', headers: sampled });
    expect(answer.json()).toEqual({ 'x-request-id': 'r-1' });
  });

  it('has its ids in its log lines and in its problems', async () => {
    await serve();
    const answer = await app.inject({ url: '/v1/refused', headers: sampled });
    expect(answer.json<Problem>()).toMatchObject({ request_id: 'r-1', trace_id: TRACE });
    await app.inject({ url: '/v1/things/1', headers: sampled });
    const ids = { request_id: 'r-1', trace_id: TRACE };
    expect(lines).toContainEqual(expect.objectContaining({ msg: 'from deep within', ...ids }));
    expect(lines).toContainEqual(expect.objectContaining({ msg: 'request', status: 200, ...ids }));
    expect(lines).toContainEqual(expect.objectContaining({ msg: 'request refused', ...ids }));
  });

  it('marks its span as failed without the message of the error', async () => {
    await serve();
    await app.inject('/v1/broken');
    const [call, served] = await spans();
    expect(call).toMatchObject({ isFailed: true, attributes: { 'error.type': 'Error' } });
    expect(served).toMatchObject({ isFailed: true, attributes: { 'error.type': '500' } });
    expect(collector.bodies.join()).not.toContain(CANARY);
  });

  it('keeps its scope while its body is read', async () => {
    await serve();
    await app.listen({ host: '127.0.0.1', port: 0 });
    const { port } = app.server.address() as AddressInfo;
    const headers = { ...sampled, 'content-type': 'application/json' };
    const sent = request({ port, path: '/v1/things', method: 'POST', headers });
    sent.flushHeaders();
    sent.end('{"a":1}');
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    const text = Buffer.concat(await response.toArray()).toString();
    expect(JSON.parse(text)).toMatchObject({ 'x-request-id': 'r-1' });
    expect(JSON.parse(text).traceparent).toContain(TRACE);
  });
});

describe('a request of a component', () => {
  const url = `${INTERNAL_PREFIX}/things/1`;

  it('continues its trace once it is authenticated', async () => {
    await serve({ ratio: 0 });
    await app.inject({ url, headers: { ...sampled, ...component } });
    expect(await spans()).toMatchObject([
      { traceId: TRACE },
      { traceId: TRACE, parentSpanId: SPAN, name: `GET ${INTERNAL_PREFIX}/things/:id` },
    ]);
  });

  it.each([
    ['not without authentication', sampled],
    ['not if it is not recorded there', { ...notSampled, ...component }],
    ['not without a trace', component],
  ])('%s', async (_what, headers) => {
    await serve();
    await app.inject({ url, headers });
    expect(await spans()).toEqual([]);
  });
});

it('records no health check', async () => {
  await serve();
  await app.inject({ url: '/healthz', headers: sampled });
  expect(await spans()).toEqual([]);
});

it('records nothing and sends nothing without a collector', async () => {
  await serve({ endpoint: undefined });
  expect(tracing).toBeUndefined();
  const answer = await app.inject({ url: '/v1/things/1', headers: sampled });
  expect(answer.json()).toEqual({ 'x-request-id': 'r-1' });
  expect(lines.every((line) => !('trace_id' in line))).toBe(true);
  expect(await registry.metrics()).not.toContain('svc_trace_spans_total{');
});

it('ends the span of a WebSocket with its handshake, from which its tasks go on', async () => {
  await serve();
  const endpoint = new WebSocketEndpoint({ protocol: 'test.v1', maxMessageBytes: 16 });
  routeUpgrades(app, 1_000);
  app.get('/v1/ws', { config: { webSocket: true } }, async (incoming, reply) => {
    const upgrade = endpoint.begin(incoming);
    origin = currentOrigin();
    endpoint.accept(upgrade, incoming, reply);
    return reply;
  });
  await app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = app.server.address() as AddressInfo;
  const socket = new WebSocket(`ws://127.0.0.1:${port}/v1/ws`, ['test.v1'], { headers: sampled });
  await once(socket, 'open');
  await expect.poll(() => collector.spans).toHaveLength(1);
  expect(lines).toContainEqual(
    expect.objectContaining({ msg: 'request', route: '/v1/ws', status: 101, request_id: 'r-1' }),
  );
  const task = origin?.begin({ name: 'agent task', kind: 'internal' });
  expect(task?.run(callHeaders)).toMatchObject({ 'x-request-id': 'r-1' });
  task?.end();
  await expect.poll(() => collector.spans).toHaveLength(2);
  const [upgrade, child] = collector.spans;
  expect(child).toMatchObject({ traceId: TRACE, parentSpanId: upgrade?.spanId });
  socket.terminate();
});

describe('what outlives a request', () => {
  it('belongs to it only from its origin on', async () => {
    await serve();
    let late: unknown;
    const ended = Promise.withResolvers<void>();
    const done = Promise.withResolvers<void>();
    app.get('/v1/loop', async () => {
      void ended.promise.then(async () => {
        late = await inSpan({ name: 'later', kind: 'client' }, async () => callHeaders());
        done.resolve();
      });
      return {};
    });
    await app.inject({ url: '/v1/loop', headers: sampled });
    ended.resolve();
    await done.promise;
    expect(late).toEqual({});
    expect(await spans()).toHaveLength(1);
  });

  it('has a bounded number of spans', async () => {
    await serve();
    await app.inject({ url: '/v1/origin', headers: sampled });
    for (let index = 0; index < 1_000; index += 1) {
      origin?.begin({ name: 'model request', kind: 'client' })?.end();
    }
    expect(await spans()).toHaveLength(1 + 128);
  });
});

describe('a collector', () => {
  const outcome = async (name: string) =>
    Number(
      new RegExp(`svc_trace_spans_total\\{outcome="${name}"\\} (\\d+)`).exec(
        await registry.metrics(),
      )?.[1] ?? 0,
    );

  it.each<[string, () => void]>([
    ['that never answers', () => (collector.answer = 'never')],
    ['that answers 500', () => (collector.answer = 500)],
    ['that answers 503, for which the exporter retries', () => (collector.answer = 503)],
    ['that is down', () => void collector[Symbol.asyncDispose]()],
  ])(
    '%s delays neither requests nor the end, and spans that wait are bounded',
    async (_what, fail) => {
      // Requests that waited for an export would outlast the test.
      await serve({ bounds: { queue: 64, batch: 16, exportMs: 600_000, closeMs: 300 } });
      fail();
      for (let index = 0; index < 500; index += 1) {
        const answer = await app.inject({ url: '/v1/things/1', headers: sampled });
        expect(answer.statusCode).toBe(200);
      }
      expect(await outcome('ended')).toBe(1_000);
      const start = performance.now();
      await tracing?.close();
      expect(performance.now() - start).toBeLessThan(30_000);
      expect(await outcome('exported')).toBe(0);
      expect(collector.spans).toEqual([]);
    },
  );

  it('that never answers gets no more than one batch and then what waits', async () => {
    await serve({ bounds: { queue: 64, batch: 16, exportMs: 600_000, closeMs: 300 } });
    collector.answer = 'never';
    for (let index = 0; index < 500; index += 1) await app.inject('/v1/things/1');
    await tracing?.close();
    const received = collector.bodies.join().match(/"spanId"/g) ?? [];
    expect(received.length).toBeLessThanOrEqual(16 + 64);
  });

  it('that fails is reported once, and once more when it works again', async () => {
    await serve();
    collector.answer = 500;
    const said = (text: string) => lines.filter(({ msg }) => String(msg).includes(text)).length;
    for (let index = 0; index < 3; index += 1) {
      const failed = await outcome('failed');
      await app.inject('/v1/origin');
      await expect.poll(() => outcome('failed')).toBe(failed + 1);
    }
    expect(said('cannot send spans')).toBe(1);
    collector.answer = 200;
    await app.inject('/v1/origin');
    await expect.poll(() => outcome('exported')).toBe(1);
    expect(said('reach the collector again')).toBe(1);
  });

  it('gets what is left at the end', async () => {
    await serve({ bounds: { delayMs: 60_000 } });
    await app.inject('/v1/origin');
    expect(await spans()).toHaveLength(1);
  });
});
