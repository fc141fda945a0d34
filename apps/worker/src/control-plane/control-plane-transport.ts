import type { Readable } from 'node:stream';
import { CONTROL_PLANE_NAME, INTERNAL_PREFIX } from '@svc/contract';
import type { TokenMinter } from '@svc/service-kit';
import { withDeadline } from '@svc/service-kit/concurrency';
import type { TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import { Agent, type Dispatcher, request } from 'undici';

/** The control plane answered with an error. `code` is of the catalogue when the body was a problem. */
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
  /** PEM of the only CA that is trusted; undefined: those the system trusts. */
  readonly ca: string | undefined;
  readonly mint: TokenMinter;
}

/** The form of an answer. */
export interface Answer<T> {
  Check(value: unknown): value is T;
}

export interface Call {
  readonly method: Dispatcher.HttpMethod;
  /** Below the internal prefix. */
  readonly path: string;
  readonly json?: unknown;
  /** Instead of JSON: bytes as they come. */
  readonly body?: Readable;
  readonly signal: AbortSignal;
  /** For the whole call with its body, in ms. */
  readonly deadlineMs: number;
}

const CONNECTIONS = 16;
const CONNECT_MS = 5_000;
const MAX_PROBLEM_CHARS = 65_536;

/** Carries a worker's calls to the control plane. Each has a deadline; none is retried here. */
export class ControlPlaneTransport {
  readonly #options: ControlPlaneTransportOptions;
  readonly #agent: Agent;

  constructor(options: ControlPlaneTransportOptions) {
    this.#options = options;
    this.#agent = new Agent({
      connections: CONNECTIONS,
      connect: {
        timeout: CONNECT_MS,
        ...(options.ca === undefined ? {} : { ca: options.ca }),
      },
    });
  }

  /** @throws ControlPlaneError for an answer of failure; Error for one of another form */
  async json<T>(call: Call, answer: Answer<T>): Promise<T> {
    const response = await this.#send(call);
    const value: unknown = await response.body.json();
    if (!answer.Check(value)) throw new Error('the control plane sent an answer of another form');
    return value;
  }

  /** A call whose answer says nothing more. @throws ControlPlaneError */
  async done(call: Call): Promise<void> {
    const response = await this.#send(call);
    await response.body.dump();
  }

  /** The answer's bytes as they come; to be read or destroyed. @throws ControlPlaneError */
  async bytes(call: Call): Promise<Readable> {
    return (await this.#send(call)).body;
  }

  async close(): Promise<void> {
    await this.#agent.destroy();
  }

  async #send(call: Call): Promise<Dispatcher.ResponseData> {
    const { url, mint } = this.#options;
    const { method, path, json, body, signal, deadlineMs } = call;
    const media = json === undefined ? 'application/octet-stream' : 'application/json';
    const content = json === undefined ? body : JSON.stringify(json);
    const response = await request(new URL(`${INTERNAL_PREFIX}${path}`, url), {
      dispatcher: this.#agent,
      method,
      headers: {
        authorization: `Bearer ${await mint(CONTROL_PLANE_NAME)}`,
        ...(content === undefined ? {} : { 'content-type': media }),
      },
      body: content ?? null,
      signal: withDeadline(signal, deadlineMs),
    });
    if (response.statusCode < 300) return response;
    throw new ControlPlaneError(response.statusCode, codeOf(await response.body.text()));
  }
}

/** Whether a call that failed so may succeed when it is made again. */
export function mayPass(error: unknown): boolean {
  if (!(error instanceof ControlPlaneError)) return true;
  return error.status >= 500 || error.status === 408 || error.status === 429;
}

/** The form of an answer as its schema says. */
export function answerOf<T>(schema: TSchema): Answer<T> {
  const compiled = Compile(schema);
  return { Check: (value): value is T => compiled.Check(value) };
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
