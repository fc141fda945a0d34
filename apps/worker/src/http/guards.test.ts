import { createTokenMinter } from '@svc/service-kit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Harness } from '../../test/harness.ts';

let harness: Harness;

beforeAll(async () => {
  harness = await Harness.start();
});

afterAll(() => harness[Symbol.asyncDispose]());

describe('authentication', () => {
  it.each([
    ['no token', () => ''],
    ['a token of another secret', () => 'eyJhbGciOiJIUzI1NiJ9.e30.c2lnbmF0dXJl'],
  ])('refuses %s', async (_name, token) => {
    const response = await harness.call('GET', '/sandboxes', { token: token() });
    expect(response.statusCode).toBe(401);
    await response.body.dump();
  });

  it('refuses a token for another worker, or of another issuer', async () => {
    for (const [issuer, audience] of [
      ['svc-control-plane', 'worker-2'],
      ['worker-1', 'worker-1'],
    ] as const) {
      const token = await createTokenMinter(harness.key, issuer)(audience);
      const response = await harness.call('GET', '/sandboxes', { token });
      expect(response.statusCode).toBe(401);
      await response.body.dump();
    }
  });
});
