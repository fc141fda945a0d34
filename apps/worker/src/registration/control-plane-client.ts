import {
  CONTROL_PLANE_NAME,
  type HeartbeatRequest,
  HeartbeatResponse,
  INTERNAL_PREFIX,
  type RegisterWorkerRequest,
  RegisterWorkerResponse,
  type WorkerSandbox,
} from '@svc/contract';
import type { TokenMinter } from '@svc/service-kit';
import { withDeadline } from '@svc/service-kit';
import type { TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import { Agent, request } from 'undici';

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

export interface ControlPlaneClientOptions {
  /** Base URL of the control plane. */
  readonly url: string;
  /** PEM of the only CA that is trusted; undefined: those the system trusts. */
  readonly ca: string | undefined;
  readonly workerId: string;
  readonly mint: TokenMinter;
  /** For each call, in ms. */
  readonly deadlineMs?: number;
}

const DEADLINE_MS = 10_000;
const MAX_PROBLEM_CHARS = 65_536;

/** The calls a worker makes to the control plane. Each has a deadline; none is retried here. */
export class ControlPlaneClient {
  readonly #options: ControlPlaneClientOptions;
  readonly #agent: Agent;

  constructor(options: ControlPlaneClientOptions) {
    this.#options = options;
    this.#agent = new Agent({
      connections: 4,
      connect: {
        timeout: 5_000,
        ...(options.ca === undefined ? {} : { ca: options.ca }),
      },
    });
  }

  register(body: RegisterWorkerRequest, signal: AbortSignal): Promise<RegisterWorkerResponse> {
    return this.#post('/workers/register', body, registered, signal);
  }

  /** Fails with a {@link ControlPlaneError} 404 when this worker has to register again. */
  heartbeat(body: HeartbeatRequest, signal: AbortSignal): Promise<HeartbeatResponse> {
    return this.#post(`${this.#path}/heartbeat`, body, beaten, signal);
  }

  /** At most 1000 events at once. */
  async sendEvents(events: readonly WorkerSandbox[], signal: AbortSignal): Promise<void> {
    await this.#post(`${this.#path}/events`, { events }, undefined, signal);
  }

  async close(): Promise<void> {
    await this.#agent.destroy();
  }

  get #path(): string {
    return `/workers/${encodeURIComponent(this.#options.workerId)}`;
  }

  async #post<T>(
    path: string,
    body: unknown,
    answer: { Check(value: unknown): value is T } | undefined,
    signal: AbortSignal,
  ): Promise<T> {
    const { url, mint, deadlineMs = DEADLINE_MS } = this.#options;
    const response = await request(new URL(`${INTERNAL_PREFIX}${path}`, url), {
      dispatcher: this.#agent,
      method: 'POST',
      headers: {
        authorization: `Bearer ${await mint(CONTROL_PLANE_NAME)}`,
        'content-type': 'application/json',
      },
      body: JSON.stringify(body),
      signal: withDeadline(signal, deadlineMs),
    });
    const text = await response.body.text();
    if (response.statusCode >= 300) {
      throw new ControlPlaneError(response.statusCode, codeOf(text));
    }
    if (answer === undefined) return undefined as T;
    const value: unknown = JSON.parse(text);
    if (!answer.Check(value)) throw new Error('the control plane sent an answer of another form');
    return value;
  }
}

const registered = checker<RegisterWorkerResponse>(RegisterWorkerResponse);
const beaten = checker<HeartbeatResponse>(HeartbeatResponse);

function checker<T>(schema: TSchema): { Check(value: unknown): value is T } {
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
