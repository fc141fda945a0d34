import type { ServerResponse } from 'node:http';
import type { LlmDialect } from '@svc/contract';
import { expect, test } from 'vitest';
import { startHttpServer } from '../../../test/http-server.ts';
import { type FailureStatus, GatewayFailure, sendFailure } from './failure.ts';

/** Serves one request with `answer`, and returns its URL. */
async function serve(answer: (response: ServerResponse) => void): Promise<string> {
  const { host, port } = await startHttpServer((_request, response) => answer(response));
  return `http://${host}:${port}`;
}

async function failed(dialect: LlmDialect | undefined, status: FailureStatus) {
  const failure = new GatewayFailure(status, 'Größer geht nicht.');
  const answer = await fetch(await serve((response) => sendFailure(response, dialect, failure)));
  return { answer, body: await answer.json() };
}

/** What the clients of the vendors know a status by. */
const TYPES: readonly [FailureStatus, string, string, string, string][] = [
  [400, 'invalid_request_error', 'INVALID_ARGUMENT', 'invalid_request_error', 'invalid_request'],
  [401, 'authentication_error', 'UNAUTHENTICATED', 'invalid_request_error', 'invalid_api_key'],
  [403, 'permission_error', 'PERMISSION_DENIED', 'invalid_request_error', 'not_allowed'],
  [404, 'not_found_error', 'NOT_FOUND', 'invalid_request_error', 'not_found'],
  [413, 'request_too_large', 'INVALID_ARGUMENT', 'invalid_request_error', 'request_too_large'],
  [429, 'rate_limit_error', 'RESOURCE_EXHAUSTED', 'requests', 'rate_limit_exceeded'],
  [502, 'api_error', 'UNAVAILABLE', 'server_error', 'upstream_unavailable'],
  [504, 'timeout_error', 'DEADLINE_EXCEEDED', 'server_error', 'upstream_timeout'],
];

test.each(TYPES)(
  '%i is told in the form of each vendor',
  async (status, anthropic, google, type, code) => {
    const message = 'Größer geht nicht.';
    const { answer, body } = await failed('anthropic', status);
    expect(answer.status).toBe(status);
    expect(answer.headers.get('content-type')).toBe('application/json');
    expect(answer.headers.get('retry-after')).toBe(status === 429 ? '1' : null);
    expect(body).toEqual({ type: 'error', error: { type: anthropic, message } });
    expect((await failed('google', status)).body).toEqual({
      error: { code: status, message, status: google },
    });
    for (const dialect of ['openai', 'deepseek', undefined] as const) {
      expect((await failed(dialect, status)).body).toEqual({
        error: { message, param: null, type, code },
      });
    }
  },
);

test('a response that has begun is cut off', async () => {
  const url = await serve((response) => {
    response.writeHead(200);
    response.write('half');
    sendFailure(response, 'openai', new GatewayFailure(502, 'The model endpoint is gone.'));
  });
  const read = fetch(url).then((answer) => answer.text());
  await expect(read).rejects.toThrow();
});
