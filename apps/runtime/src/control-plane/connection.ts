import { CONTROL_PLANE_NAME } from '@svc/contract';
import type { TokenMinter } from '@svc/service-kit';
import { untilAborted } from '@svc/service-kit/concurrency';
import { callHeaders, inSpan } from '@svc/service-kit/tracing';
import { Agent, request } from 'undici';
import type { ControlPlaneAddress } from '../options.ts';

const CONNECT_MS = 2_000;
const CONNECTIONS = 32;
/** Slow calls have their own connections, so that those about a lost worker do not delay lookups. */
const SLOW_CONNECTIONS = 16;

/** An answer of the control plane. */
export interface Answer {
  readonly status: number;
  readonly text: string;
}

/** A call of the control plane. */
export interface Call {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  readonly path: string;
  /** In traces, which name no ids. */
  readonly name: string;
  readonly json?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly isSlow?: boolean;
  readonly signal: AbortSignal;
}

/** The connections to the control plane, whose address may become known later. */
export class ControlPlaneConnection {
  readonly #mint: TokenMinter;
  readonly #open: Promise<{ url: string; usual: Agent; slow: Agent }>;
  #agents: Agent[] = [];

  constructor(controlPlane: ControlPlaneAddress | Promise<ControlPlaneAddress>, mint: TokenMinter) {
    this.#mint = mint;
    this.#open = Promise.resolve(controlPlane).then(({ url, ca }) => {
      const connect = { timeout: CONNECT_MS, ...(ca === undefined ? {} : { ca }) };
      const usual = new Agent({ connections: CONNECTIONS, connect });
      const slow = new Agent({ connections: SLOW_CONNECTIONS, connect });
      this.#agents = [usual, slow];
      return { url, usual, slow };
    });
    // Each call reports a failure; until then it must not count as unhandled.
    this.#open.catch(() => undefined);
  }

  /** Sends a request, and resolves with its answer whatever its status. Rejects when none arrives. */
  async send({ method, path, name, json, headers, isSlow = false, signal }: Call): Promise<Answer> {
    const { url, usual, slow } = await untilAborted(this.#open, signal);
    return inSpan({ name: `control plane ${name}`, kind: 'client' }, async (span) => {
      const { statusCode, body } = await request(new URL(path, url), {
        method,
        dispatcher: isSlow ? slow : usual,
        headers: {
          ...callHeaders(),
          authorization: `Bearer ${await this.#mint(CONTROL_PLANE_NAME)}`,
          ...headers,
          ...(json === undefined ? {} : { 'content-type': 'application/json' }),
        },
        ...(json === undefined ? {} : { body: JSON.stringify(json) }),
        signal,
      });
      span?.set({ 'http.response.status_code': statusCode });
      return { status: statusCode, text: await body.text() };
    });
  }

  async close(): Promise<void> {
    await Promise.all(this.#agents.map((agent) => agent.destroy()));
  }
}
