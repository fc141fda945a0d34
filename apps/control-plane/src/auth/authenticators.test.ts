import { createHttpServer, createLogger, type HttpServer } from '@svc/service-kit';
import type { Store } from '@svc/store';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { AccountTokens } from './account-tokens.ts';
import { createAuthenticators } from './authenticators.ts';
import { TenantRequests } from './tenant-requests.ts';

const KEY = `svc_${'a'.repeat(64)}`;
const KIB = 1024;

let app: HttpServer;
/** Those who wait for their turns. */
let waiting: { readonly key: string; readonly begin: () => void; readonly signal: AbortSignal }[];
let spent: number[];
let handled: string[];

beforeEach(() => {
  [waiting, spent, handled] = [[], [], []];
  const store = { apiKeys: { findOwner: async () => ({ tenantId: 'usr_a', keyId: 'key_a' }) } };
  const starts = {
    begin: (key: string, signal: AbortSignal) =>
      new Promise<void>((begin) => waiting.push({ key, begin, signal })),
    spend: (_key: string, tasks: number) => spent.push(tasks),
  };
  const auth = createAuthenticators(
    store as unknown as Store,
    {} as AccountTokens,
    new TenantRequests(10),
    starts,
  );
  app = createHttpServer({ logger: createLogger({ level: 'silent' }) });
  app.decorateRequest('caller', undefined);
  app.decorateRequest('statementOwner', undefined);
  app.route({
    method: ['GET', 'DELETE'],
    url: '/:bytes',
    onRequest: auth.apiKey,
    handler: async (request) => {
      handled.push(request.method);
      return 'x'.repeat(Number((request.params as { bytes: string }).bytes));
    },
  });
});
afterEach(() => app.close());

const call = (method: 'GET' | 'DELETE', bytes: number) =>
  app.inject({ method, url: `/${bytes}`, headers: { authorization: `Bearer ${KEY}` } });

test('a request waits for the turn of its tenant, and a large answer counts as many', async () => {
  const answer = call('GET', 300 * KIB);
  await expect.poll(() => waiting.map(({ key }) => key)).toEqual(['usr_a']);
  expect(handled).toEqual([]);
  waiting[0]?.begin();
  expect((await answer).statusCode).toBe(200);
  await expect.poll(() => spent).toEqual([4]);
  const small = call('GET', 10);
  await expect.poll(() => waiting.length).toBe(2);
  waiting[1]?.begin();
  await small;
  await expect.poll(() => spent).toEqual([4, 0]);
});

test('a deletion does not wait', async () => {
  expect((await call('DELETE', 1)).statusCode).toBe(200);
  expect(waiting).toEqual([]);
});
