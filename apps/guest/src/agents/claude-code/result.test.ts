import { expect, test } from 'vitest';
import { endOf } from './result.ts';

test.for([
  [{ api_error_status: 403, terminal_reason: 'api_error' }, 'llm_unauthorized'],
  [{ api_error_status: 503, terminal_reason: 'api_error' }, 'llm_overloaded'],
  [{ api_error_status: 500, terminal_reason: 'api_error' }, 'llm_unavailable'],
  [{ api_error_status: 413, terminal_reason: 'api_error' }, 'llm_refused'],
  [{ api_error: 'connection_failed', terminal_reason: 'api_error' }, 'llm_unavailable'],
  [{ terminal_reason: 'api_error', api_error_status: null }, 'llm_bad_response'],
  [{ subtype: 'error_max_turns' }, 'turn_limit'],
  [{ subtype: 'error_max_budget_usd' }, 'token_limit'],
  [{ subtype: 'error_during_execution', errors: ['it broke'] }, 'agent_failed'],
] as const)('%o is %s', ([result, code]) => {
  const end = endOf({ type: 'result', is_error: true, ...result });
  expect(end).toMatchObject({ status: 'failed', failure: { code } });
});

test('reports a refused key without the vendor’s message, which may repeat it', () => {
  const result = 'API Error: 401 Incorrect API key provided: sk-abc';
  const end = endOf({
    is_error: true,
    terminal_reason: 'api_error',
    api_error_status: 401,
    result,
  });
  expect(JSON.stringify(end)).not.toContain('sk-abc');
  expect(end.status === 'failed' && end.failure.message).toBe('The model vendor refused the key.');
});
