import { INTERNAL_PREFIX } from '@svc/contract';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Harness } from '../test/harness.ts';

let harness: Harness;

beforeAll(async () => {
  harness = await Harness.start({ SVC_INTERNAL_LISTEN: '127.0.0.1:0' });
});
afterAll(() => harness?.[Symbol.asyncDispose]());

const statusOf = async (url: string, init?: RequestInit) => (await fetch(url, init)).status;

test('workers and the operator are served at the internal address alone', async () => {
  const { plane } = harness;
  const worker = await harness.addWorker('w1');
  expect((await worker.register(plane.url)).status).toBe(404);
  const request = { method: 'POST', body: '{}', headers: { 'content-type': 'application/json' } };
  const path = `${INTERNAL_PREFIX}/workers/w1/heartbeat`;
  expect(await statusOf(plane.url + path, request)).toBe(404);
  expect(await statusOf(plane.internalUrl + path, request)).toBe(401);
  expect(await statusOf(`${plane.url}/metrics`)).toBe(404);
  expect(await statusOf(`${plane.internalUrl}/metrics`)).toBe(200);
});

test('customers are served at the public address alone', async () => {
  const { plane } = harness;
  const { key } = await harness.signUp();
  const headers = { authorization: `Bearer ${key}` };
  expect(await statusOf(`${plane.url}/v1/sandboxes`, { headers })).toBe(200);
  for (const path of ['/v1/sandboxes', '/openapi.json', '/docs']) {
    expect(await statusOf(plane.internalUrl + path, { headers }), path).toBe(404);
  }
});

test('load balancers are served at both', async () => {
  for (const url of [harness.plane.url, harness.plane.internalUrl]) {
    expect(await statusOf(`${url}/healthz`)).toBe(200);
    expect(await statusOf(`${url}/readyz`)).toBe(200);
  }
});

test('a control plane is reached at the addresses that it listens on', async () => {
  const other = await harness.startAnother({
    SVC_LISTEN: '127.0.0.2:0',
    SVC_INTERNAL_LISTEN: '127.0.0.3:0',
  });
  try {
    expect(new URL(other.url).hostname).toBe('127.0.0.2');
    expect(new URL(other.internalUrl).hostname).toBe('127.0.0.3');
    for (const url of [other.url, other.internalUrl]) {
      expect(await statusOf(`${url}/healthz`)).toBe(200);
    }
  } finally {
    await other.close();
  }
});
