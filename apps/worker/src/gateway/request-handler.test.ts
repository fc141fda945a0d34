import { once } from 'node:events';
import { Agent, type IncomingMessage, request } from 'node:http';
import { PLACEHOLDER_LLM_KEY } from '@svc/contract';
import { RequestScope, type TraceOrigin, type Tracing } from '@svc/service-kit/tracing';
import type { Registry } from 'prom-client';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type GatewayGuest, GatewayLab, HOST, messages, USAGE } from '../../test/gateway-lab.ts';

const PATH = '/anthropic/v1/messages';
const BODY = { model: 'claude-1', messages };
const ERROR = 50;
const WARNING = 40;
let lab: GatewayLab;

beforeAll(async () => {
  lab = await GatewayLab.open();
});

afterEach(async () => {
  await lab.reset();
  lab.logs.length = 0;
});

afterAll(() => lab[Symbol.asyncDispose]());

/** What a gateway's metrics say, one line per value. */
async function samplesOf(metrics: Registry): Promise<string[]> {
  const lines = (await metrics.metrics()).split('\n');
  return lines.filter((line) => line.startsWith('svc_worker_llm_')).sort();
}

/** A sandbox that has left while its request was running at an endpoint that does not answer. */
async function leftSandbox(): Promise<GatewayGuest> {
  const guest = await lab.start('anthropic');
  lab.script({ fault: 'hang' });
  const leaving = new AbortController();
  const left = guest.ask(PATH, { body: BODY, signal: leaving.signal }).catch(() => 'left');
  await expect.poll(() => samplesOf(guest.metrics)).toEqual(['svc_worker_llm_requests_running 1']);
  leaving.abort();
  expect(await left).toBe('left');
  return guest;
}

const logged = () => lab.logs.map((line) => JSON.parse(line) as Record<string, unknown>);

describe('the metrics', () => {
  test('count requests by status, and tokens by kind', async () => {
    const { ask, metrics } = await lab.start('anthropic');
    lab.script({ text: 'yes', usage: USAGE }, { text: 'yes', usage: USAGE }, { status: 529 });
    for (const status of [200, 200, 529]) {
      const { statusCode, body } = await ask(PATH, { body: BODY });
      expect(statusCode).toBe(status);
      await body.dump();
    }
    await expect
      .poll(() => samplesOf(metrics))
      .toEqual([
        'svc_worker_llm_requests_running 0',
        'svc_worker_llm_requests_total{vendor="anthropic",status="200"} 2',
        'svc_worker_llm_requests_total{vendor="anthropic",status="529"} 1',
        'svc_worker_llm_tokens_total{vendor="anthropic",kind="cached_input"} 120',
        'svc_worker_llm_tokens_total{vendor="anthropic",kind="input"} 200',
        'svc_worker_llm_tokens_total{vendor="anthropic",kind="output"} 40',
      ]);
  });

  test('count no cached tokens where the vendor reports none', async () => {
    const { ask, metrics } = await lab.start('openai');
    lab.script({ text: 'yes', usage: { input_tokens: 3, output_tokens: 2 } });
    const { body } = await ask('/openai/chat/completions', { body: { model: 'm', messages } });
    await body.dump();
    expect(await samplesOf(metrics)).toContain(
      'svc_worker_llm_tokens_total{vendor="openai",kind="cached_input"} 0',
    );
  });

  test('show a request that is running, and count it as 0 when it is aborted before its response', async () => {
    const { metrics } = await leftSandbox();
    await expect
      .poll(() => samplesOf(metrics))
      .toEqual([
        'svc_worker_llm_requests_running 0',
        'svc_worker_llm_requests_total{vendor="anthropic",status="0"} 1',
      ]);
  });

  test('count a refused request, which is none that runs', async () => {
    const { ask, metrics } = await lab.start('anthropic', {}, { limits: { requests: 1 } });
    for (let round = 0; round < 3; round += 1) {
      const { body } = await ask('/anthropic/v1/files', { body: {} });
      await body.dump();
    }
    expect(await samplesOf(metrics)).toEqual([
      'svc_worker_llm_requests_running 0',
      'svc_worker_llm_requests_total{vendor="anthropic",status="404"} 3',
    ]);
  });
});

describe('a trace', () => {
  interface Recorded {
    readonly name: string;
    readonly kind: string;
    readonly attributes: Record<string, unknown>;
    readonly failures: unknown[];
    ended: boolean;
  }

  /** An origin, and the spans that begin there. */
  function recording(): { readonly spans: Recorded[]; readonly origin: () => TraceOrigin } {
    const spans: Recorded[] = [];
    const tracing: Tracing = {
      start: ({ name, kind, attributes }) => {
        const span: Recorded = {
          name,
          kind,
          attributes: { ...attributes },
          failures: [],
          ended: false,
        };
        spans.push(span);
        return {
          context: { traceId: '1'.repeat(32), spanId: '2'.repeat(16), sampled: true },
          set: (more) => void Object.assign(span.attributes, more),
          fail: (error) => void span.failures.push(error),
          end: () => {
            span.ended = true;
          },
        };
      },
      takesNew: () => true,
      close: async () => undefined,
    };
    const task = new RequestScope('req_1');
    task.record(tracing, { name: 'task', kind: 'internal' });
    const { origin } = task;
    if (origin === undefined) throw new Error('nothing is recorded');
    spans.length = 0;
    return { spans, origin: () => origin };
  }

  test('has a span of each request, with its status', async () => {
    const { spans, origin } = recording();
    const { ask } = await lab.start('anthropic', { origin });
    const { body } = await ask(PATH, { body: BODY });
    await body.dump();
    const refused = await ask('/anthropic/v1/files', { body: {} });
    await refused.body.dump();
    const span = { name: 'model request', kind: 'client', ended: true };
    const attributes = { 'svc.llm_vendor': 'anthropic', 'svc.sandbox_id': 'vm_1' };
    await expect
      .poll(() => spans)
      .toEqual([
        { ...span, attributes: { ...attributes, 'http.response.status_code': 200 }, failures: [] },
        {
          ...span,
          attributes: { ...attributes, 'http.response.status_code': 404 },
          failures: [expect.objectContaining({ status: 404 })],
        },
      ]);
  });

  test('is not sent to the vendor', async () => {
    const { ask } = await lab.start('anthropic', { origin: recording().origin });
    const traceparent = `00-${'1'.repeat(32)}-${'2'.repeat(16)}-01`;
    const { body } = await ask(PATH, { body: BODY, headers: { traceparent } });
    await body.dump();
    expect(lab.model.requests.at(-1)?.headers).not.toHaveProperty('traceparent');
  });
});

describe('the log', () => {
  test('has a warning for an endpoint that fails, and nothing for a refusal', async () => {
    const { ask } = await lab.start('anthropic');
    lab.script({ fault: 'close' });
    for (const path of [PATH, '/anthropic/v1/files']) {
      const { body } = await ask(path, { body: BODY });
      await body.dump();
    }
    expect(logged()).toEqual([
      expect.objectContaining({
        level: WARNING,
        vm_id: 'vm_1',
        vendor: 'anthropic',
        msg: 'The model endpoint cannot be reached.',
        err: expect.objectContaining({ message: expect.any(String) }),
      }),
    ]);
  });

  test('does not grow with the number of failures that a sandbox causes', async () => {
    const { ask } = await lab.startAt((request) => request.socket.destroy());
    for (let round = 0; round < 100; round += 1) {
      const { statusCode, body } = await ask(PATH, { body: BODY });
      expect(statusCode).toBe(502);
      await body.dump();
    }
    // One a minute, however long these take.
    expect(logged().length).toBeLessThan(10);
    expect(logged()[0]).toMatchObject({ level: WARNING, omitted: 0 });
  });

  test('has nothing for a sandbox that has left', async () => {
    const { metrics } = await leftSandbox();
    await expect.poll(() => samplesOf(metrics)).toContain('svc_worker_llm_requests_running 0');
    expect(logged()).toEqual([]);
  });

  test('has usage that could not be recorded, and the sandbox gets its answer', async () => {
    const failure = new Error('no');
    const onUsage = () => {
      throw failure;
    };
    const { ask } = await lab.start('anthropic', { onUsage });
    lab.script({ text: 'the answer', usage: USAGE });
    const { statusCode, body } = await ask(PATH, { body: BODY });
    expect(statusCode).toBe(200);
    expect(await body.text()).toContain('the answer');
    expect(logged()).toEqual([
      expect.objectContaining({
        level: ERROR,
        vm_id: 'vm_1',
        err: expect.objectContaining({ message: failure.message }),
      }),
    ]);
  });
});

describe('a connection', () => {
  test('carries the next request after one whose body is refused halfway', async () => {
    const { port } = await lab.start('anthropic', {}, { limits: { requestBytes: 1_000 } });
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    lab.endLater(() => agent.destroy());
    const statusOf = async (pieces: readonly string[]) => {
      const headers = { 'x-api-key': PLACEHOLDER_LLM_KEY, 'transfer-encoding': 'chunked' };
      const sent = request({ host: HOST, port, path: PATH, method: 'POST', headers, agent });
      const answered = once(sent, 'response');
      for (const piece of pieces) sent.write(piece);
      sent.end();
      const [response] = (await answered) as [IncomingMessage];
      await response.resume().toArray();
      return { status: response.statusCode, reused: sent.reusedSocket };
    };
    const large = ['{"text":"', ...Array.from({ length: 40 }, () => 'x'.repeat(50_000)), '"}'];
    expect(await statusOf(large)).toEqual({ status: 413, reused: false });
    expect(await statusOf([JSON.stringify(BODY)])).toEqual({ status: 200, reused: true });
  });
});
