import type { WorkerDouble } from '@svc/worker-double';

/** An answer of the internal API. */
export interface WorkerAnswer {
  readonly status: number;
  /** The code of a problem. */
  readonly code: unknown;
  /** Empty for an answer without one. */
  readonly body: Record<string, unknown>;
}

/** Calls a route of the internal API as a worker, with a JSON body if there is one. */
export async function askAsWorker(
  as: Pick<WorkerDouble, 'ask'>,
  url: string,
  method: string,
  path: string,
  body?: object,
  extra: Record<string, string> = {},
): Promise<WorkerAnswer> {
  const headers = { 'content-type': 'application/json', ...extra };
  const init = body === undefined ? { headers: extra } : { headers, body: JSON.stringify(body) };
  const response = await as.ask(url, method, path, init);
  const text = await response.text();
  const parsed: Record<string, unknown> = text === '' ? {} : JSON.parse(text);
  return { status: response.status, code: parsed.code, body: parsed };
}
