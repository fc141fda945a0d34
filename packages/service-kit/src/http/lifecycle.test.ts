import { once } from 'node:events';
import { Agent, type ClientRequest, type IncomingMessage, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { OCTET_STREAM_MEDIA_TYPE, type Problem, ServiceError } from '@svc/contract';
import { type Logger, pino } from 'pino';
import { afterEach, describe, expect, it } from 'vitest';
import { acceptStreamOnly } from './body-parsers.ts';
import { ClientGoneError, clientGoneSignal, isClientGone } from './client-gone.ts';
import { formatEvent } from './event-stream.ts';
import { createHttpServer, type HttpServer } from './server.ts';

const silent = pino({ level: 'silent' });
const servers: HttpServer[] = [];

afterEach(async () => {
  await Promise.all(servers.splice(0).map((app) => app.close()));
});

function make(logger: Logger = silent): HttpServer {
  const app = createHttpServer({ logger });
  servers.push(app);
  return app;
}

async function listen(app: HttpServer): Promise<number> {
  await app.listen({ host: '127.0.0.1', port: 0 });
  const address = app.server.address();
  if (address === null || typeof address === 'string') throw new Error('not listening on TCP');
  return address.port;
}

async function answerOf(sent: ClientRequest): Promise<{ status: number; body: string }> {
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  const chunks = await response.toArray();
  return { status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString() };
}

describe('streams', () => {
  it('of the accepted media type reach the route unread; other types are 415', async () => {
    const app = make();
    await app.register(async (scope) => {
      acceptStreamOnly(scope, OCTET_STREAM_MEDIA_TYPE);
      scope.post('/up', async (incoming) => {
        let bytes = 0;
        for await (const chunk of incoming.body as AsyncIterable<Buffer>) bytes += chunk.length;
        return { bytes };
      });
    });
    app.post('/json', (incoming) => incoming.body);
    const post = (url: string, type: string, payload: Buffer | string) =>
      app.inject({ method: 'POST', url, headers: { 'content-type': type }, payload });
    const large = Buffer.alloc(3 * 1024 * 1024);
    expect((await post('/up', OCTET_STREAM_MEDIA_TYPE, large)).json()).toEqual({
      bytes: large.length,
    });
    expect((await post('/up', 'application/json', '{}')).statusCode).toBe(415);
    expect((await post('/json', OCTET_STREAM_MEDIA_TYPE, 'x')).statusCode).toBe(415);
  });

  it('of events contain JSON without line breaks', () => {
    expect(formatEvent('stdout', { data: 'a\nb' })).toBe(
      'event: stdout\ndata: {"data":"a\\nb"}\n\n',
    );
  });
});

describe('closing', () => {
  it('finishes running requests and refuses new ones', async () => {
    const app = make();
    const entered = Promise.withResolvers<void>();
    const finish = Promise.withResolvers<object>();
    app.get('/slow', () => {
      entered.resolve();
      return finish.promise;
    });
    app.get('/quick', () => ({ ok: true }));
    const port = await listen(app);
    const slow = answerOf(request({ port, path: '/slow' }).end());
    await entered.promise;
    // A request that the server has received only in part when closing begins.
    const head = 'GET /quick HTTP/1.1\r\nhost: x\r\n';
    const accepted = once(app.server, 'connection') as Promise<[Socket]>;
    const client = connect(port, '127.0.0.1');
    const answer = client.toArray();
    client.write(head);
    const [serverSide] = await accepted;
    await expect.poll(() => serverSide.bytesRead).toBe(head.length);
    const closed = app.close();
    client.write('\r\n');
    expect(Buffer.concat(await answer).toString()).toContain('"code":"shutting_down"');
    finish.resolve({ ok: true });
    expect(await slow).toEqual({ status: 200, body: '{"ok":true}' });
    await closed;
  });
});

describe('a client that disconnects', () => {
  it('aborts the signal of its request', async () => {
    const app = make();
    const entered = Promise.withResolvers<void>();
    const seen = Promise.withResolvers<unknown>();
    app.post('/wait', (_incoming, reply) => {
      entered.resolve();
      const signal = clientGoneSignal(reply);
      signal.addEventListener('abort', () => seen.resolve(signal.reason));
      return new Promise(() => undefined);
    });
    const port = await listen(app);
    const sent = request({ port, path: '/wait', method: 'POST' });
    sent.on('error', () => sent.destroy());
    sent.end();
    await entered.promise;
    sent.destroy();
    const reason = await seen.promise;
    expect(reason).toBeInstanceOf(ClientGoneError);
    expect(isClientGone(new Error('create failed', { cause: reason }))).toBe(true);
    expect(isClientGone(new Error('create failed'))).toBe(false);
  });

  it('does not abort the signal after its response', async () => {
    const app = make();
    let signal: AbortSignal | undefined;
    app.get('/done', (_incoming, reply) => {
      signal = clientGoneSignal(reply);
      return { ok: true };
    });
    await answerOf(request({ port: await listen(app), path: '/done' }).end());
    expect(signal?.aborted).toBe(false);
  });
});

describe('the log', () => {
  it('has the request id in every line, and the cause of failures', async () => {
    const lines: Record<string, unknown>[] = [];
    const logger = pino({ level: 'debug' }, { write: (line) => lines.push(JSON.parse(line)) });
    const app = make(logger);
    app.get('/hello', (incoming) => {
      incoming.log.info('hello');
      return {};
    });
    app.get('/broken', () => {
      throw new Error('the cause');
    });
    await app.inject({ url: '/hello', headers: { 'x-request-id': 'r-1' } });
    const broken = await app.inject('/broken');
    expect(lines).toContainEqual(expect.objectContaining({ msg: 'hello', request_id: 'r-1' }));
    expect(lines).toContainEqual(
      expect.objectContaining({ msg: 'request', route: '/hello', status: 200, request_id: 'r-1' }),
    );
    expect(lines).toContainEqual(
      expect.objectContaining({
        level: 50,
        request_id: broken.json<Problem>().request_id,
        err: expect.objectContaining({ message: 'the cause' }),
      }),
    );
  });

  it('has each request at info level when asked to, without its URL', async () => {
    const lines: Record<string, unknown>[] = [];
    const logger = pino({ level: 'info' }, { write: (line) => lines.push(JSON.parse(line)) });
    const app = createHttpServer({ logger, accessLog: true, caller: () => ({ tenant_id: 't-1' }) });
    app.get('/things/:id', () => ({}));
    await app.inject('/things/forty-two?token=secret');
    await app.inject('/nowhere/forty-two?token=secret');
    expect(lines).toMatchObject([
      { msg: 'request', route: '/things/:id', status: 200, client: '127.0.0.1', tenant_id: 't-1' },
      { msg: 'request', status: 404, client: '127.0.0.1', tenant_id: 't-1' },
    ]);
    expect(JSON.stringify(lines)).not.toMatch(/forty-two|secret/);
    await app.close();
  });

  it('has the bytes of each request on its connection', async () => {
    const { app, lines } = withAccessLog();
    app.get('/large', () => 'x'.repeat(100_000));
    app.post('/up', () => ({}));
    const port = await listen(app);
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const payload = JSON.stringify('y'.repeat(50_000));
    const headers = { 'content-type': 'application/json' };
    await answerOf(request({ port, path: '/up', method: 'POST', agent, headers }).end(payload));
    await answerOf(request({ port, path: '/large', agent }).end());
    agent.destroy();
    await expect.poll(() => lines.length).toBe(2);
    const [up, large] = lines;
    expect(up).toMatchObject({ route: '/up', status: 200 });
    expect(Number(up?.received_bytes)).toBeGreaterThan(50_000);
    expect(Number(up?.sent_bytes)).toBeLessThan(2_000);
    expect(Number(large?.received_bytes)).toBeLessThan(2_000);
    expect(Number(large?.sent_bytes)).toBeGreaterThan(100_000);
  });

  it('has a request whose client left, once and without a status', async () => {
    const { app, lines } = withAccessLog();
    const entered = Promise.withResolvers<void>();
    app.get('/wait', () => {
      entered.resolve();
      return new Promise(() => undefined);
    });
    const sent = request({ port: await listen(app), path: '/wait?token=secret' });
    sent.on('error', () => sent.destroy());
    sent.end();
    await entered.promise;
    sent.destroy();
    await expect
      .poll(() => lines)
      .toMatchObject([{ route: '/wait', aborted: true, client: '127.0.0.1' }]);
    expect(lines[0]).not.toHaveProperty('status');
  });

  it('shows no secret of a request, wherever it is', async () => {
    const { app, lines } = withAccessLog();
    app.get('/things/:id', () => ({ made: 'secret' }));
    app.post('/things', () => {
      throw new ServiceError('validation_failed', 'secret');
    });
    await app.inject({
      url: '/things/secret?token=secret&X-Amz-Signature=secret',
      headers: {
        authorization: 'Bearer secret',
        cookie: 'a=secret',
        'user-agent': 'secret',
        referer: 'https://secret.example',
        'x-request-id': 'not sane: secret',
        traceparent: 'secret',
        tracestate: 'secret=secret',
        baggage: 'a=secret',
      },
    });
    await app.inject({ method: 'POST', url: '/things', payload: { llm_key: 'secret' } });
    await app.inject('/secret/secret');
    await app.inject('/things/%secret');
    expect(lines.length).toBeGreaterThanOrEqual(3);
    expect(JSON.stringify(lines)).not.toContain('secret');
  });
});

function withAccessLog() {
  const lines: Record<string, unknown>[] = [];
  const write = (text: string) => {
    const line = JSON.parse(text);
    if (line.msg === 'request') lines.push(line);
  };
  const app = createHttpServer({ logger: pino({ level: 'info' }, { write }), accessLog: true });
  servers.push(app);
  return { app, lines };
}
