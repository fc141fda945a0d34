import { describe, expect, test } from 'vitest';
import { expectProblem } from '../../test/assertions.ts';
import { shared } from '../../test/shared-service.ts';
import { useSandbox } from '../../test/test-sandbox.ts';

const sandbox = useSandbox();

describe('credentials', () => {
  const wrong = [
    undefined,
    '',
    'Basic abc',
    'Bearer',
    'Bearer ',
    'Bearer nonsense',
    `Bearer svc_${'0'.repeat(64)}`,
    `Bearer svc_live_${'0'.repeat(43)}`,
    'Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJ1c3JfMSJ9.',
  ];

  test.each(wrong)('%j opens nothing', async (authorization) => {
    const headers = authorization === undefined ? {} : { authorization };
    for (const [method, target] of [
      ['GET', '/v1/sandboxes'],
      ['POST', '/v1/sandboxes'],
      ['GET', `/v1/sandboxes/${sandbox().id}`],
      ['DELETE', `/v1/sandboxes/${sandbox().id}`],
      ['POST', `/v1/sandboxes/${sandbox().id}/exec`],
      ['GET', '/v1/tenants/me'],
    ] as const) {
      expectProblem(await shared.raw({ method, target, headers }), 'unauthorized');
    }
  });

  test('the account token reads the account and opens no sandbox', async () => {
    const { token } = sandbox().account;
    const me = await shared.raw({ target: '/v1/tenants/me', apiKey: token });
    expect(me.status).toBe(200);
    expectProblem(await shared.raw({ target: '/v1/sandboxes', apiKey: token }), 'unauthorized');
  });

  test('come before the body: nobody learns what is wrong with theirs without one', async () => {
    const answer = await shared.raw({ method: 'POST', target: '/v1/sandboxes', body: '{' });
    expectProblem(answer, 'unauthorized');
  });
});

describe('sign-up', () => {
  test.each([
    undefined,
    null,
    '',
    'nobody',
    'a@b',
    '@example.com',
    'a b@example.com',
    7,
    ['a@example.com'],
    `${'x'.repeat(300)}@example.com`,
  ])('the address %j is none', async (email) => {
    expectProblem(
      await shared.raw({ method: 'POST', target: '/v1/tenants', body: { email } }),
      'email_invalid',
    );
  });

  test.each(['', '12345', '1234567', 'abcdef', '000000'])('the code %j is wrong', async (code) => {
    const body = { email: 'nobody@example.com', code };
    expectProblem(
      await shared.raw({ method: 'POST', target: '/v1/tenants/verify', body }),
      'otp_invalid',
    );
  });
});
