/** Error responses of the gateway itself, in the format of the vendor that the agent's client expects. */

import type { ServerResponse } from 'node:http';
import type { LlmDialect } from '@svc/contract';

export type FailureStatus = 400 | 401 | 403 | 404 | 413 | 429 | 502 | 504;

const ANTHROPIC: Readonly<Record<FailureStatus, string>> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  502: 'api_error',
  504: 'timeout_error',
};
const GOOGLE: Readonly<Record<FailureStatus, string>> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  413: 'INVALID_ARGUMENT',
  429: 'RESOURCE_EXHAUSTED',
  502: 'UNAVAILABLE',
  504: 'DEADLINE_EXCEEDED',
};
const OPENAI: Readonly<Record<FailureStatus, { type: string; code: string }>> = {
  400: { type: 'invalid_request_error', code: 'invalid_request' },
  401: { type: 'invalid_request_error', code: 'invalid_api_key' },
  403: { type: 'invalid_request_error', code: 'not_allowed' },
  404: { type: 'invalid_request_error', code: 'not_found' },
  413: { type: 'invalid_request_error', code: 'request_too_large' },
  429: { type: 'requests', code: 'rate_limit_exceeded' },
  502: { type: 'server_error', code: 'upstream_unavailable' },
  504: { type: 'server_error', code: 'upstream_timeout' },
};

const RETRY_AFTER_SECONDS = '1';

/** A failure that the gateway reports instead of a response of the model endpoint. The message is for the agent. */
export class GatewayFailure extends Error {
  override readonly name = 'GatewayFailure';
  readonly status: FailureStatus;

  constructor(status: FailureStatus, message: string, options?: ErrorOptions) {
    super(message, options);
    this.status = status;
  }
}

/** Sends an error response, unless the sandbox has left; aborts the response if it has already begun. */
export function sendFailure(
  response: ServerResponse,
  dialect: LlmDialect | undefined,
  { status, message }: GatewayFailure,
): void {
  if (response.headersSent || response.destroyed) {
    response.destroy();
    return;
  }
  const body = JSON.stringify(failureBody(dialect, status, message));
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    // What the gateway refuses for now passes by itself.
    ...(status === 429 ? { 'retry-after': RETRY_AFTER_SECONDS } : {}),
  });
  response.end(body);
}

function failureBody(
  dialect: LlmDialect | undefined,
  status: FailureStatus,
  message: string,
): unknown {
  if (dialect === 'anthropic')
    return { type: 'error', error: { type: ANTHROPIC[status], message } };
  if (dialect === 'google') return { error: { code: status, message, status: GOOGLE[status] } };
  return { error: { message, param: null, ...OPENAI[status] } };
}
