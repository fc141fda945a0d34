import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { PassThrough } from 'node:stream';
import { ERRORS, type ErrorCode } from '@svc/contract';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Progress } from '../../output/progress.ts';
import { selfCheck } from './self-check.ts';

let refusal: ErrorCode;
const out = new PassThrough({ encoding: 'utf8' });
/** A control plane that refuses every request. */
const server = createServer((request, response) => {
  request.resume();
  const { status, title, detail } = ERRORS[refusal];
  const wait = status === 429 ? { 'retry-after': '5' } : {};
  response.writeHead(status, { 'content-type': 'application/problem+json', ...wait });
  response.end(JSON.stringify({ code: refusal, status, title, detail }));
});

beforeEach(async () => {
  await once(server.listen(0, '127.0.0.1'), 'listening');
});
afterEach(() => server.close());

function check(hasVms = true): Promise<void> {
  const { port } = server.address() as AddressInfo;
  const progress = new Progress(out as unknown as NodeJS.WriteStream);
  const service = { localUrl: `http://127.0.0.1:${port}`, tls: { server: undefined } };
  return selfCheck(progress, service as never, {
    apiKey: 'key',
    template: 'standard',
    hasVms: async () => hasVms,
    stop: AbortSignal.timeout(60_000),
  });
}

test.each(['no_capacity', 'sandbox_limit_reached', 'credits_exhausted', 'no_workers'] as const)(
  'a service that takes no more sandboxes is checked without one: %s',
  async (code) => {
    refusal = code;
    await check();
    expect(out.read()).toMatch(new RegExp(`self-check skipped: .* \\(${code}\\)\n$`));
  },
);

test.each(['boot_failed', 'template_not_available'] as const)('fails with %s', async (code) => {
  refusal = code;
  await expect(check()).rejects.toMatchObject({ code });
});

test('fails on a machine that has no room for a single sandbox', async () => {
  refusal = 'no_capacity';
  await expect(check(false)).rejects.toMatchObject({ code: 'no_capacity' });
});
