import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadConfig } from '@svc/config';
import { INTERNAL_PREFIX, PLACEHOLDER_LLM_KEY } from '@svc/contract';
import { CLUSTER_SECRET, Harness } from '@svc/control-plane/testing';
import { type ModelServer, startModelServer } from '@svc/model-server';
import { type RuntimeHost, startRuntimeHost } from '@svc/runtime';
import { SvcClient } from '@svc/sdk';
import { createLogger, createSelfSigned } from '@svc/service-kit';
import { freePorts, OtlpCollector, type ReceivedSpan } from '@svc/service-kit/testing';
import { type RunningWorker, startWorker } from '@svc/worker';
import { LIMITS, MemoryHost, ScriptedGuest } from '@svc/worker/testing';
import { ComponentDouble } from '@svc/worker-double';
import { Agent, request } from 'undici';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';

/**
 * The traces of a whole service: the SDK, and a real control plane, runtime host, worker and gateway. Its VM exists in
 * memory only; the agent is a script, and asks a scripted model.
 */

const HOST = '127.0.0.1';
const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const CLIENT_SPAN = '00f067aa0ba902b7';
const PROMPT = 'the prompt of the customer';
const LLM_KEY = 'sk-the-key-of-the-customer';

let directory: string;
let collector: OtlpCollector;
let model: ModelServer;
let guest: ScriptedGuest;
let plane: Harness;
let worker: RunningWorker;
let runtime: RuntimeHost;
let gatewayPort: number;
let key: string;
const logLines: string[] = [];

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'svc-traces-'));
  collector = await OtlpCollector.start();
  const tls = await createSelfSigned({ commonName: 'm', names: [HOST], days: 1 });
  const egressCaFile = join(directory, 'ca.pem');
  await writeFile(egressCaFile, tls.cert);
  const usage = { input_tokens: 11, output_tokens: 7 };
  model = await startModelServer({ tls, script: { rules: [{ reply: { text: 'hi', usage } }] } });
  const ports = await freePorts(2, HOST);
  gatewayPort = ports[0] ?? 0;
  const environment = {
    SVC_TLS: 'off',
    SVC_ACCESS_LOG: 'on',
    SVC_RUNTIME_LISTEN: `${HOST}:${ports[1]}`,
    SVC_RUNTIME_URL: `ws://${HOST}:${ports[1]}`,
    SVC_EGRESS_ALLOW_HOSTS: new URL(model.url).host,
    SVC_EGRESS_CA_FILE: egressCaFile,
    SVC_OTLP_ENDPOINT: collector.url,
    SVC_TRACE_RATIO: '1',
  };
  plane = await Harness.start(environment);
  const config = loadConfig({ ...environment, SVC_DATA_DIR: directory });
  const controlPlane = { url: plane.plane.url, ca: undefined };
  const logger = createLogger({
    level: 'info',
    pretty: false,
    destination: { write: (line) => void logLines.push(line) },
  });
  const components = [
    new ComponentDouble('runtime', 'runtime-1', CLUSTER_SECRET),
    new ComponentDouble('worker', 'worker-1', CLUSTER_SECRET),
  ];
  const [ofRuntime, ofWorker] = await Promise.all(
    components.map(async (component) => {
      expect((await component.enrol(controlPlane.url)).status).toBe(204);
      return component.identity();
    }),
  );
  if (ofRuntime === undefined || ofWorker === undefined) throw new Error('no identities');
  runtime = await startRuntimeHost({ config, logger, identity: ofRuntime, controlPlane });
  guest = await ScriptedGuest.listen();
  const microvms = new MemoryHost();
  microvms.onRestored = (vm) => {
    vm.agentPort = guest.port;
    vm.host = HOST;
  };
  worker = await startWorker({
    config: { ...config, pool: {} },
    identity: ofWorker,
    logger,
    microvms,
    controlPlane,
    listen: { host: HOST, port: 0 },
    signal: new AbortController().signal,
    capacity: LIMITS,
    gatewayPort,
  });
  await worker.ready;
  ({ key } = await plane.signUp());
  await plane.addBundle(key, 'llm', { LLM_API_KEY: LLM_KEY });
});

afterAll(async () => {
  await runtime?.close();
  await worker?.close({ keepSandboxes: false });
  await plane?.[Symbol.asyncDispose]();
  await guest?.[Symbol.asyncDispose]();
  await model?.close();
  await collector?.[Symbol.asyncDispose]();
  await rm(directory, { recursive: true, force: true });
});

/** Asks the model as the agent in the VM does. */
async function askModel(): Promise<void> {
  const answer = await fetch(`http://${HOST}:${gatewayPort}/anthropic/v1/messages`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-api-key': PLACEHOLDER_LLM_KEY,
      traceparent: `00-${'e'.repeat(32)}-${'e'.repeat(16)}-01`,
    },
    body: JSON.stringify({
      model: 'claude-test',
      max_tokens: 9,
      messages: [{ role: 'user', content: PROMPT }],
    }),
  });
  expect(answer.status).toBe(200);
  await answer.text();
}

/** The names of a span and of those above it, with their components. */
function pathTo(name: string): string[] {
  const spans = collector.trace(TRACE);
  const path: string[] = [];
  let span: ReceivedSpan | undefined = spans.find((found) => found.name === name);
  for (; span !== undefined; span = spans.find(({ spanId }) => spanId === span?.parentSpanId)) {
    path.unshift(`${span.resource['service.name']}: ${span.name}`);
    if (span.parentSpanId === CLIENT_SPAN) path.unshift('client');
  }
  return path;
}

it('traces a session from the SDK through all components to its model', async () => {
  await using client = new SvcClient({
    baseUrl: plane.plane.url,
    apiKey: key,
    traceparent: () => `00-${TRACE}-${CLIENT_SPAN}-01`,
  });
  guest.onClient = ({ type }) => {
    if (type === 'task') guest.frame({ type: 'task_started' });
  };
  const access = await client.sessions.create({
    agent: { kind: 'deictic' },
    app: { id: 'my-app' },
    template: 'standard',
    llm: { vendor: 'anthropic', base_url: model.url },
    secrets: ['llm'],
    user_id: 'ada',
  });
  await using connection = client.sessions.connect(access);
  connection.task(PROMPT);
  for await (const frame of connection) {
    if (frame.type === 'task_started') {
      await askModel();
      guest.state('a conversation');
      guest.frame({ type: 'task_completed', status: 'completed', result: 'done' });
    }
    if (frame.type === 'task_completed') break;
  }

  const attach = [
    'client',
    'svc-runtime: GET /v1/sessions/:id/ws',
    'svc-runtime: worker GET /sessions/{id}/ws',
    `svc-worker: GET ${INTERNAL_PREFIX}/sessions/:id/ws`,
    'svc-worker: agent task',
  ];
  const create = `POST ${INTERNAL_PREFIX}/sandboxes`;
  const creation = [
    'client',
    'svc-control-plane: POST /v1/sessions',
    'svc-control-plane: worker POST /sandboxes',
    `svc-worker: ${create}`,
  ];
  await expect.poll(() => pathTo(create)).toEqual(creation);
  for (const part of ['acquire VM', 'start agent']) {
    await expect.poll(() => pathTo(part)).toEqual([...creation, `svc-worker: ${part}`]);
  }
  await expect
    .poll(() => pathTo('model request'))
    .toEqual([...attach, 'svc-worker: model request']);
  const commit = `POST ${INTERNAL_PREFIX}/sessions/:id/turns`;
  await expect
    .poll(() => pathTo(commit))
    .toEqual([
      ...attach,
      'svc-worker: control plane POST /sessions/{id}/turns',
      `svc-control-plane: ${commit}`,
    ]);

  const spans = collector.trace(TRACE);
  const find = (name: string) => spans.find((span) => span.name === name);
  expect(find('model request')?.attributes).toMatchObject({
    'svc.llm_vendor': 'anthropic',
    'http.response.status_code': 200,
  });
  expect(find('agent task')?.attributes).toMatchObject({
    'svc.session_id': access.chat_session_id,
    'svc.task_status': 'completed',
  });
  const requestId = find('POST /v1/sessions')?.attributes['svc.request_id'];
  expect(find(create)?.attributes['svc.request_id']).toBe(requestId);
  // The request of the agent neither ends up in a trace of its choice nor tells the vendor of ours.
  expect(collector.trace('e'.repeat(32))).toEqual([]);
  expect(model.requests.at(-1)?.headers).not.toHaveProperty('traceparent');
});

it('lets nobody decide what is recorded without the secret of the cluster', async () => {
  const stranger = 'd'.repeat(32);
  const headers = { traceparent: `00-${stranger}-${CLIENT_SPAN}-01`, authorization: 'Bearer x' };
  const paths = ['/sandboxes', '/sessions/x/ws', '/workers/worker-1/heartbeat'];
  const agent = new Agent({ connect: { rejectUnauthorized: false } });
  onTestFinished(() => agent.destroy());
  for (const url of [worker.url, plane.plane.url]) {
    for (const path of paths) {
      const answer = await request(`${url}${INTERNAL_PREFIX}${path}`, {
        headers,
        dispatcher: agent,
      });
      expect(answer.statusCode).toBeGreaterThanOrEqual(401);
      await answer.body.dump();
    }
  }
  // What is recorded later has arrived, so that what was recorded before has, too.
  const later = 'c'.repeat(32);
  const answer = await request(`${plane.plane.url}/v1/sandboxes`, {
    headers: { traceparent: `00-${later}-${CLIENT_SPAN}-00` },
  });
  expect(answer.statusCode).toBe(401);
  await answer.body.dump();
  await expect.poll(() => collector.trace(later)).toHaveLength(1);
  expect(collector.trace(stranger)).toEqual([]);
});

it('shows no secret and no content in spans and log lines', async () => {
  await expect.poll(() => collector.bodies.join()).toContain('model request');
  const shown = [...collector.bodies, ...logLines, ...plane.logLines].join('\n');
  for (const secret of [key, LLM_KEY, PROMPT, 'a conversation', 'Bearer ', 'token=', 'eyJ']) {
    expect(shown).not.toContain(secret);
  }
});

it('has a line in the access log for each request, with its trace and its tenant', async () => {
  const lines = [...logLines, ...plane.logLines].map((line) => JSON.parse(line));
  const ids = {
    trace_id: TRACE,
    tenant_id: expect.stringMatching(/^usr_/),
    request_id: expect.any(String),
  };
  expect(lines).toContainEqual(
    expect.objectContaining({ msg: 'request', route: '/v1/sessions', status: 201, ...ids }),
  );
  expect(lines).toContainEqual(
    expect.objectContaining({ msg: 'request', route: '/v1/sessions/:id/ws', status: 101, ...ids }),
  );
});
