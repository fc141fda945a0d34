import type { Readable } from 'node:stream';
import { CONTROL_PLANE_NAME, INTERNAL_PREFIX } from '@svc/contract';
import type { TokenMinter } from '@svc/service-kit';
import { withDeadline } from '@svc/service-kit/concurrency';
import { callHeaders, inSpan } from '@svc/service-kit/tracing';
import type { TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import { Agent, type Dispatcher, request } from 'undici';

/** An error response of the control plane. `code` is from the catalogue if the body is a problem document. */
export class ControlPlaneError extends Error {
  override readonly name = 'ControlPlaneError';
  readonly status: number;
  readonly code: string | undefined;

  constructor(status: number, code: string | undefined) {
    super(`the control plane answered ${status}${code === undefined ? '' : ` ${code}`}`);
    this.status = status;
    this.code = code;
  }
}

export interface ControlPlaneTransportOptions {
  /** Base URL of the control plane. */
  readonly url: string;
  /** PEM of the only trusted CA; undefined: the system's CAs. */
  readonly ca: string | undefined;
  readonly mint: TokenMinter;
}

/** A validator of response bodies. */
export interface Answer<T> {
  Check(value: unknown): value is T;
}

export interface Call {
  readonly method: Dispatcher.HttpMethod;
  /** Relative to the internal prefix. */
  readonly path: string;
  /** Reports keep this worker alive for the control plane. They have connections that no other call can take. */
  readonly isReport?: boolean;
  readonly json?: unknown;
  /** A binary body to stream, instead of JSON. */
  readonly body?: Readable;
  readonly signal: AbortSignal;
  /** Time limit of the whole call including the body, in ms. */
  readonly deadlineMs: number;
}

const CONNECTIONS = 16;
/** One for heartbeats and events, which are sent in turn, and one for usage. */
const REPORT_CONNECTIONS = 2;
const CONNECT_MS = 5_000;
const MAX_PROBLEM_CHARS = 65_536;

/** Sends a worker's calls to the control plane. Each has a time limit; none is retried here. */
export class ControlPlaneTransport {
  readonly #options: ControlPlaneTransportOptions;
  readonly #agent: Agent;
  readonly #reports: Agent;

  constructor(options: ControlPlaneTransportOptions) {
    this.#options = options;
    const { ca } = options;
    const connect = { timeout: CONNECT_MS, ...(ca === undefined ? {} : { ca }) };
    this.#agent = new Agent({ connections: CONNECTIONS, connect });
    this.#reports = new Agent({ connections: REPORT_CONNECTIONS, connect });
  }

  /** A call with a JSON response. @throws ControlPlaneError for an error response; Error for an invalid one */
  async json<T>(call: Call, answer: Answer<T>): Promise<T> {
    const response = await this.#send(call);
    const value: unknown = await response.body.json();
    if (!answer.Check(value)) throw new Error('the control plane sent an invalid response');
    return value;
  }

  /** A call whose response body is ignored. @throws ControlPlaneError */
  async done(call: Call): Promise<void> {
    const response = await this.#send(call);
    await response.body.dump();
  }

  /** A call with a binary response, which must be read or destroyed. @throws ControlPlaneError */
  async bytes(call: Call): Promise<Readable> {
    return (await this.#send(call)).body;
  }

  async close(): Promise<void> {
    await Promise.all([this.#agent.destroy(), this.#reports.destroy()]);
  }

  async #send(call: Call): Promise<Dispatcher.ResponseData> {
    const { url, mint } = this.#options;
    const { method, path, isReport, json, body, signal, deadlineMs } = call;
    const media = json === undefined ? 'application/octet-stream' : 'application/json';
    const content = json === undefined ? body : JSON.stringify(json);
    return inSpan(
      { name: `control plane ${method} ${patternOf(path)}`, kind: 'client' },
      async (span) => {
        const response = await request(new URL(`${INTERNAL_PREFIX}${path}`, url), {
          dispatcher: isReport ? this.#reports : this.#agent,
          method,
          headers: {
            ...callHeaders(),
            authorization: `Bearer ${await mint(CONTROL_PLANE_NAME)}`,
            ...(content === undefined ? {} : { 'content-type': media }),
          },
          body: content ?? null,
          signal: withDeadline(signal, deadlineMs),
        });
        span?.set({ 'http.response.status_code': response.statusCode });
        if (response.statusCode < 300) return response;
        throw new ControlPlaneError(response.statusCode, codeOf(await response.body.text()));
      },
    );
  }
}

/** Whether a retry of a call that failed like this may succeed. */
export function mayPass(error: unknown): boolean {
  if (!(error instanceof ControlPlaneError)) return true;
  return error.status >= 500 || error.status === 408 || error.status === 429;
}

/** A validator of responses for this schema. */
export function answerOf<T>(schema: TSchema): Answer<T> {
  const compiled = Compile(schema);
  return { Check: (value): value is T => compiled.Check(value) };
}

/** The path of a call without its id, which is the second part of each. */
function patternOf(path: string): string {
  const [route = ''] = path.split('?', 1);
  return route.replace(/^(\/[^/]+)\/[^/]+/, '$1/{id}');
}

function codeOf(text: string): string | undefined {
  if (text.length > MAX_PROBLEM_CHARS) return undefined;
  try {
    const body: unknown = JSON.parse(text);
    if (typeof body !== 'object' || body === null || !('code' in body)) return undefined;
    return typeof body.code === 'string' ? body.code : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
