import { afterAll, expect, test } from 'vitest';
import { expectProblem } from '../../test/assertions.ts';
import { median } from '../../test/median.ts';
import type { RawAnswer, RawRequest } from '../../test/raw-http.ts';
import { shared } from '../../test/shared-service.ts';
import type { Account } from '../../test/sign-up.ts';
import { useSandbox } from '../../test/test-sandbox.ts';

const sandbox = useSandbox();
const stranger: Account = await shared.signUp();
afterAll(() => stranger.client.close());

/** A well-formed id that no account has. */
const UNKNOWN = 'vm_01a1fe515af17b63b66c37e535320d10';

const routes: readonly Omit<RawRequest, 'apiKey'>[] = [
  { target: '/v1/sandboxes/{id}' },
  { method: 'DELETE', target: '/v1/sandboxes/{id}' },
  { method: 'POST', target: '/v1/sandboxes/{id}/exec', body: { command: 'true' } },
  { target: '/v1/sandboxes/{id}/logs' },
  { target: '/v1/sandboxes/{id}/files?path=/etc/hostname' },
  {
    method: 'POST',
    target: '/v1/sandboxes/{id}/files?path=/tmp/x',
    headers: { 'content-type': 'application/octet-stream' },
    body: 'x',
  },
  { method: 'POST', target: '/v1/sandboxes/{id}/cancel' },
  { method: 'POST', target: '/v1/sandboxes/{id}/connect' },
  { method: 'POST', target: '/v1/sandboxes/{id}/pause' },
  { method: 'POST', target: '/v1/sandboxes/{id}/resume' },
];

const ask = (route: Omit<RawRequest, 'apiKey'>, id: string) =>
  shared.raw({ ...route, target: route.target.replace('{id}', id), apiKey: stranger.apiKey });

/** An answer without the fields that differ between any two answers. */
function comparable({ status, headers, body }: RawAnswer) {
  const { date: _date, 'x-request-id': _id, ...rest } = headers;
  const text = body.toString('utf8').replace(/"request_id":"[^"]*"/, '');
  return { status, headers: rest, text };
}

test.each(routes)('$method $target gives the same answer as for an unknown id', async (route) => {
  const foreign = await ask(route, sandbox().id);
  const unknown = await ask(route, UNKNOWN);
  expectProblem(foreign, 'sandbox_not_found');
  expect(comparable(foreign)).toEqual(comparable(unknown));
});

test.each([
  'x',
  'vm_',
  'VM_01',
  '%2e%2e',
  '..%2f..%2fetc',
  "'; DROP TABLE sandboxes; --",
  '%00',
  '🚀',
  'x'.repeat(2000),
])('the id %j is unknown', async (id) => {
  const target = `/v1/sandboxes/${id.includes('%') ? id : encodeURIComponent(id)}`;
  expectProblem(await shared.raw({ target, apiKey: stranger.apiKey }), 'sandbox_not_found');
});

test('takes as long as for an unknown id', async () => {
  const route = { target: '/v1/sandboxes/{id}' };
  const times = { foreign: [] as number[], unknown: [] as number[] };
  const timed = async (list: number[], id: string) => {
    const start = performance.now();
    await ask(route, id);
    list.push(performance.now() - start);
  };
  for (let round = 0; round < 150; round += 1) {
    // Alternately and in both orders, so that other load on the machine affects both alike.
    const pair = [() => timed(times.foreign, sandbox().id), () => timed(times.unknown, UNKNOWN)];
    for (const one of round % 2 === 0 ? pair : pair.reverse()) await one();
  }
  const ratio = median(times.foreign) / median(times.unknown);
  expect(ratio).toBeGreaterThan(0.67);
  expect(ratio).toBeLessThan(1.5);
});

test('the sandbox is unchanged afterwards', async () => {
  expect(await sandbox().account.client.sandboxes.get(sandbox().id)).toMatchObject({
    state: 'running',
  });
  expect(await sandbox().run('ls /tmp/x 2>/dev/null || echo untouched')).toBe('untouched');
});
