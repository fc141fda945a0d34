import { afterAll, expect, test } from 'vitest';
import { expectProblem } from '../../test/assertions.ts';
import type { RawAnswer, RawRequest } from '../../test/raw-http.ts';
import { shared } from '../../test/shared-service.ts';
import type { Account } from '../../test/sign-up.ts';
import { useSandbox } from '../../test/test-sandbox.ts';

const sandbox = useSandbox();
const stranger: Account = await shared.signUp();
afterAll(() => stranger.client.close());

/** Of the right form, and nobody's. */
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
  { method: 'POST', target: '/v1/sandboxes/{id}/pause' },
  { method: 'POST', target: '/v1/sandboxes/{id}/resume' },
];

const ask = (route: Omit<RawRequest, 'apiKey'>, id: string) =>
  shared.raw({ ...route, target: route.target.replace('{id}', id), apiKey: stranger.apiKey });

/** All of an answer but what differs by its nature. */
function essence({ status, headers, body }: RawAnswer) {
  const { date: _date, 'x-request-id': _id, ...rest } = headers;
  const text = body.toString('utf8').replace(/"request_id":"[^"]*"/, '');
  return { status, headers: rest, text };
}

test.each(routes)('$method $target answers as for an id that nobody has', async (route) => {
  const others = await ask(route, sandbox().id);
  const nobodys = await ask(route, UNKNOWN);
  expectProblem(others, 'sandbox_not_found');
  expect(essence(others)).toEqual(essence(nobodys));
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
])('the id %j is an unknown one', async (id) => {
  const target = `/v1/sandboxes/${id.includes('%') ? id : encodeURIComponent(id)}`;
  expectProblem(await shared.raw({ target, apiKey: stranger.apiKey }), 'sandbox_not_found');
});

test('takes as long as for an id that nobody has', async () => {
  const route = { target: '/v1/sandboxes/{id}' };
  const times = { others: [] as number[], nobodys: [] as number[] };
  const timed = async (list: number[], id: string) => {
    const start = performance.now();
    await ask(route, id);
    list.push(performance.now() - start);
  };
  for (let round = 0; round < 150; round += 1) {
    // In turns and in both orders, so that what else the machine does falls on both alike.
    const pair = [() => timed(times.others, sandbox().id), () => timed(times.nobodys, UNKNOWN)];
    for (const one of round % 2 === 0 ? pair : pair.reverse()) await one();
  }
  const ratio = median(times.others) / median(times.nobodys);
  expect(ratio).toBeGreaterThan(0.67);
  expect(ratio).toBeLessThan(1.5);
});

test('after all this the sandbox is as it was', async () => {
  expect(await sandbox().account.client.sandboxes.get(sandbox().id)).toMatchObject({
    state: 'running',
  });
  expect(await sandbox().run('ls /tmp/x 2>/dev/null || echo untouched')).toBe('untouched');
});

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}
