const KINDS: Readonly<Record<number, { type: string; code: string | null }>> = {
  401: { type: 'invalid_request_error', code: 'invalid_api_key' },
  403: { type: 'invalid_request_error', code: 'unsupported_country_region_territory' },
  404: { type: 'invalid_request_error', code: 'model_not_found' },
  429: { type: 'requests', code: 'rate_limit_exceeded' },
};

/** OpenAI's error format, which both of its APIs use. */
export function openaiFailure(status: number, message: string): unknown {
  const other = status >= 500 ? 'server_error' : 'invalid_request_error';
  return { error: { message, param: null, ...(KINDS[status] ?? { type: other, code: null }) } };
}
