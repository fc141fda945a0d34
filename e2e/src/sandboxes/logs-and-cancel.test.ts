import { CancelResponse, type ErrorCode, LogsResponse } from '@svc/contract';
import { expect, test } from 'vitest';
import { expectProblem, expectValid } from '../../test/assertions.ts';
import { shared } from '../../test/shared-service.ts';
import { useSandbox } from '../../test/test-sandbox.ts';

const sandbox = useSandbox();
const logs = (query: string) =>
  shared.raw({
    target: `/v1/sandboxes/${sandbox().id}/logs${query}`,
    apiKey: sandbox().account.apiKey,
  });
const cancel = (body?: unknown) =>
  shared.raw({
    method: 'POST',
    target: `/v1/sandboxes/${sandbox().id}/cancel`,
    apiKey: sandbox().account.apiKey,
    body,
  });

test.each(['', '?stream=stderr', '?lines=1', '?lines=10000', '?lines=99999', '?bytes=1048576'])(
  'the log is empty before an agent has run: %s',
  async (query) => {
    const answer = await logs(query);
    expect(answer.status).toBe(200);
    expectValid(LogsResponse, answer.json());
    expect(answer.json()).toEqual({ content: '', truncated: false, total_bytes: 0 });
  },
);

test.each<[string, ErrorCode]>([
  ['?stream=stdout', 'log_stream_not_implemented'],
  ['?stream=all', 'log_stream_not_implemented'],
  ['?stream=other', 'log_stream_unknown'],
  ['?stream=', 'log_stream_unknown'],
  ['?lines=0', 'log_count_invalid'],
  ['?bytes=0', 'log_count_invalid'],
  ['?lines=-5', 'log_count_invalid'],
  ['?lines=1.5', 'log_count_invalid'],
  ['?bytes=1e3x', 'log_count_invalid'],
  ['?lines=ten', 'log_count_invalid'],
  ['?lines=', 'log_count_invalid'],
  ['?lines=1&bytes=1', 'log_lines_and_bytes'],
])('GET logs%s answers %s', async (query, code) => {
  expectProblem(await logs(query), code);
});

test('a cancel without attached clients reports cancelled: false for every reason, and ends nothing', async () => {
  for (const reason of ['credits_exhausted', 'user_request', 'admin_action', 'timeout']) {
    const answer = await cancel({ reason });
    expect(answer.status).toBe(200);
    expectValid(CancelResponse, answer.json());
    expect(answer.json()).toEqual({ vm_id: sandbox().id, cancelled: false, reason });
  }
  for (const body of [undefined, {}]) {
    expect((await cancel(body)).json()).toMatchObject({ reason: 'user_request' });
  }
  expect(await sandbox().run('echo alive')).toBe('alive');
});

test('rejects an unknown cancel reason', async () => {
  for (const reason of ['because', '', 7, null]) {
    expectProblem(await cancel({ reason }), 'unknown_cancel_reason');
  }
});
