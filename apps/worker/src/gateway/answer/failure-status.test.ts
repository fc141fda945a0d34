import { EgressError } from '@svc/egress';
import { expect, test } from 'vitest';
import { BodyError } from '../request/request-body.ts';
import { GatewayFailure } from './failure.ts';
import { upstreamFailure } from './upstream-failure.ts';

const withCode = (code: unknown) => Object.assign(new Error('at 10.0.0.1 with sk-key'), { code });

test.each([
  ['a connection that times out', withCode('UND_ERR_CONNECT_TIMEOUT'), 504, 'does not answer'],
  ['no answer in time', withCode('UND_ERR_HEADERS_TIMEOUT'), 504, 'does not answer'],
  ['a network that times out', withCode('ETIMEDOUT'), 504, 'does not answer'],
  ['an expired certificate', withCode('CERT_HAS_EXPIRED'), 502, 'certificate'],
  ['an unknown issuer', withCode('UNABLE_TO_VERIFY_LEAF_SIGNATURE'), 502, 'certificate'],
  ['a certificate of its own', withCode('DEPTH_ZERO_SELF_SIGNED'), 502, 'certificate'],
  ['a refused connection', withCode('ECONNREFUSED'), 502, 'cannot be reached'],
  ['an error without a code', new Error('at 10.0.0.1'), 502, 'cannot be reached'],
  ['what is no error', { code: 'ETIMEDOUT' }, 502, 'cannot be reached'],
  ['a body that is too large', new BodyError('too_large'), 413, 'larger'],
  ['too many bodies', new BodyError('too_much_held'), 429, 'try again'],
  ['a malformed body', new BodyError('malformed'), 400, 'repeats'],
  ['a refused address', new EgressError('is not public', 'egress_refused'), 403, 'is not public'],
  [
    'a name without addresses',
    new EgressError('has no address', 'egress_unresolved'),
    502,
    'has no address',
  ],
] as const)('%s is told as such, without addresses or keys', (_what, error, status, part) => {
  const failure = upstreamFailure(error);
  expect(failure).toBeInstanceOf(GatewayFailure);
  expect(failure).toMatchObject({ status, cause: error });
  expect(failure.message).toContain(part);
  expect(failure.message).not.toMatch(/10\.0\.0\.1|sk-key/);
});

test('a failure of the gateway itself stays as it is', () => {
  const failure = new GatewayFailure(404, 'no');
  expect(upstreamFailure(failure)).toBe(failure);
});
