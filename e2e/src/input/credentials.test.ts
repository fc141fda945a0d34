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

  test.each(wrong)('%j is unauthorized on every route', async (authorization) => {
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

  test('the account token gives access to the account but not to sandboxes', async () => {
    const { token } = sandbox().account;
    const me = await shared.raw({ target: '/v1/tenants/me', apiKey: token });
    expect(me.status).toBe(200);
    expectProblem(await shared.raw({ target: '/v1/sandboxes', apiKey: token }), 'unauthorized');
  });

  test('are checked before the body', async () => {
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
  ])('rejects the address %j', async (email) => {
    expectProblem(
      await shared.raw({ method: 'POST', target: '/v1/tenants', body: { email } }),
      'email_invalid',
    );
  });

  test.each(['', '12345', '1234567', 'abcdef', '000000'])('rejects the code %j', async (code) => {
    const body = { email: 'nobody@example.com', code };
    expectProblem(
      await shared.raw({ method: 'POST', target: '/v1/tenants/verify', body }),
      'otp_invalid',
    );
  });
});
