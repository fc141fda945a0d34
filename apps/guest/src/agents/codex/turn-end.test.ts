import { expect, test } from 'vitest';
import { endOf } from './turn-end.ts';

const BROKEN_OFF = 'stream disconnected before completion';

test.for([
  ['unauthorized', '', 'llm_unauthorized'],
  ['usageLimitExceeded', '', 'llm_rate_limited'],
  ['serverOverloaded', '', 'llm_overloaded'],
  ['contextWindowExceeded', '', 'llm_refused'],
  [{ httpConnectionFailed: { httpStatusCode: 502 } }, '', 'llm_unavailable'],
  [{ responseTooManyFailedAttempts: { httpStatusCode: 429 } }, '', 'llm_rate_limited'],
  [{ responseStreamDisconnected: { httpStatusCode: null } }, '', 'llm_unavailable'],
  ['other', `${BROKEN_OFF}: error sending request`, 'llm_unavailable'],
  ['other', `${BROKEN_OFF}: stream closed before response.completed`, 'llm_bad_response'],
  ['other', '{"error":{"message":"no such model"}}', 'llm_refused'],
  ['other', 'something else', 'agent_failed'],
  [null, '', 'agent_failed'],
] as const)('%o with "%s" is %s', ([codexErrorInfo, message, code]) => {
  const end = endOf({ status: 'failed', error: { message, codexErrorInfo } }, '');
  expect(end).toMatchObject({ status: 'failed', failure: { code } });
});

test('quotes the vendor’s message, not the body of its response', () => {
  const message = '{"error":{"message":"no such model"}}';
  const end = endOf({ status: 'failed', error: { message, codexErrorInfo: 'other' } }, '');
  expect(end.status === 'failed' && end.failure.message).toBe(
    'The model endpoint refused the request. no such model',
  );
});
