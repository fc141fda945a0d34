import type { WorkerDouble } from '@svc/worker-double';
import * as fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { URL_TEXT, valuesNear } from '../../test/arbitrary-request.ts';
import { Harness } from '../../test/harness.ts';
import { publicRoutes } from '../app.ts';

/** Every request gets a documented answer in time, and never an internal error. */

const RUNS = 25;
const DEADLINE_MS = 15_000;

interface Operation {
  readonly method: string;
  readonly path: string;
  readonly security?: readonly object[];
  readonly parameters?: readonly {
    readonly name: string;
    readonly in: string;
    readonly schema: unknown;
  }[];
  readonly requestBody?: { readonly content: Record<string, { readonly schema: unknown }> };
}

let harness: Harness;
let account: Awaited<ReturnType<Harness['signUp']>>;
let worker: WorkerDouble;
let vmId: string;
let sessionId: string;

beforeAll(async () => {
  harness = await Harness.start({
    SVC_LIMIT_OTP_PER_IP_PER_HOUR: '100000',
    SVC_LIMIT_OTP_WRONG_PER_IP_PER_HOUR: '100000',
    SVC_LIMIT_TEMPLATES_PER_MINUTE: '100000',
  });
  worker = await harness.addWorker('w1');
  account = await harness.signUp();
  vmId = await harness.create(account.key);
  await harness.addBundle(account.key, 'llm', { LLM_API_KEY: 'k' });
  sessionId = (await harness.startSession(account.key)).id;
});
afterAll(() => harness?.[Symbol.asyncDispose]());

async function operations(): Promise<Operation[]> {
  const { document } = await harness.openapi();
  const paths = document.paths as Record<
    string,
    Record<string, Omit<Operation, 'method' | 'path'>>
  >;
  return Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, rest]) => ({ ...rest, method: method.toUpperCase(), path })),
  );
}

function pathsOf({ path, parameters = [] }: Operation): fc.Arbitrary<string> {
  const inPath = fc
    .oneof(URL_TEXT, fc.constantFrom(vmId, sessionId))
    .filter((part) => !/^\.{0,2}$/.test(part));
  const query = parameters.filter((parameter) => parameter.in === 'query');
  const values = query.map(({ name }) => fc.option(URL_TEXT.map((text) => `${name}=${text}`)));
  return fc.tuple(inPath, ...values).map(([id, ...pairs]) => {
    const given = pairs.filter((pair) => pair !== null);
    const filled = path.replace(/\{\w+\}/, id);
    return given.length === 0 ? filled : `${filled}?${given.join('&')}`;
  });
}

async function bodiesOf(operation: Operation) {
  const [type, media] = Object.entries(operation.requestBody?.content ?? {})[0] ?? [];
  if (type === undefined) return fc.constant({});
  const headers = { 'content-type': type };
  if (!type.includes('json')) return fc.string().map((raw) => ({ raw, headers }));
  const { document } = await harness.openapi();
  const json = valuesNear(media?.schema, document).map((value) => ({ json: value }));
  const broken = fc.string().map((raw) => ({ raw, headers }));
  return fc.oneof({ arbitrary: json, weight: 9 }, { arbitrary: broken, weight: 1 });
}

test('the document contains every route', async () => {
  expect(await operations()).toHaveLength(publicRoutes.length);
});

test('every request gets a documented answer in time, and no internal error', async () => {
  const seen = new Map<number, number>();
  for (const operation of await operations()) {
    // After half a minute of silence the worker would get no more sandboxes.
    await worker.heartbeat(harness.plane.url);
    const byKey = JSON.stringify(operation.security ?? []).includes('apiKey');
    const key = byKey ? account.key : account.token;
    await fc.assert(
      fc.asyncProperty(pathsOf(operation), await bodiesOf(operation), async (path, body) => {
        const signal = AbortSignal.timeout(DEADLINE_MS);
        const { status, text } = await harness.call(operation.method, path, {
          key,
          signal,
          ...body,
        });
        seen.set(status, (seen.get(status) ?? 0) + 1);
        // 501: a template that no worker has an image of.
        if (status !== 501) expect(status, text).toBeLessThan(500);
      }),
      { numRuns: RUNS, endOnFailure: true },
    );
  }
  expect([...seen.keys()]).toEqual(expect.arrayContaining([200, 201, 400, 404]));
  const { body } = await harness.call('GET', '/v1/tenants/me', { key: account.key });
  expect(body.tenant_id).toBe(account.tenantId);
}, 120_000);
