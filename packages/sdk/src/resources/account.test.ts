import { expect, test } from 'vitest';
import { type Answer, json, scriptedFetch } from '../../test/scripted-fetch.ts';
import { SvcClient } from '../client.ts';

function clientOf(...answers: Answer[]) {
  const { fetch, seen } = scriptedFetch(...answers);
  return { client: new SvcClient({ baseUrl: 'https://svc.test', apiKey: 'svc_k', fetch }), seen };
}

test('escapes the names of bundles and keys, and accepts a response without a body', async () => {
  const { client, seen } = clientOf(new Response(null, { status: 204 }), json(200, { name: 'a' }));
  expect(await client.keys.revoke('key_/x')).toBeUndefined();
  await client.secrets.get('a/b');
  expect(seen.map((request) => `${request.method} ${request.url.pathname}`)).toEqual([
    'DELETE /v1/tenants/me/api-keys/key_%2Fx',
    'GET /v1/tenants/me/secrets/a%2Fb',
  ]);
});

test('never retries a rotation', async () => {
  const { client, seen } = clientOf(json(503, {}));
  await expect(client.secrets.rotate('a', { K: 'v' })).rejects.toThrow();
  expect(seen).toHaveLength(1);
  expect(seen[0]?.method).toBe('PUT');
  expect(seen[0]?.body).toBe('{"values":{"K":"v"}}');
});

test('fetches audit records page by page', async () => {
  const entry = (id: string) => ({ id, event: 'login_succeeded', created_at: '', details: {} });
  const { client, seen } = clientOf(
    json(200, { entries: [entry('3'), entry('2')], next_cursor: '2' }),
    json(200, { entries: [entry('1')] }),
  );
  const ids: string[] = [];
  for await (const { id } of client.account.audit()) ids.push(id);
  expect(ids).toEqual(['3', '2', '1']);
  expect(seen.map((request) => request.url.search)).toEqual(['?limit=100', '?limit=100&cursor=2']);
});
