/// <reference lib="esnext.disposable" preserve="true" />

import { Account } from './resources/account.ts';
import { Billing } from './resources/billing.ts';
import { Dashboard } from './resources/dashboard.ts';
import { Keys } from './resources/keys.ts';
import { Sandboxes } from './resources/sandboxes.ts';
import { Secrets } from './resources/secrets.ts';
import { Sessions } from './resources/sessions.ts';
import { Templates } from './resources/templates.ts';
import { Tenants } from './resources/tenants.ts';
import { Usage } from './resources/usage.ts';
import { Workspaces } from './resources/workspaces.ts';
import { type ClosableFetch, defaultFetch, type FetchLike } from './transport/fetch.ts';
import { Transport } from './transport/request.ts';

export interface SvcClientOptions {
  /** Address of the control plane, such as `https://localhost:8443`. */
  readonly baseUrl: string;
  /** API key or account token. Only sign-up works without one. */
  readonly apiKey?: string | undefined;
  /** PEM of the certificate authority to trust, for a service with its own CA. HTTP calls ignore it if `fetch` is given. */
  readonly ca?: string | Uint8Array | undefined;
  /** Replaces the HTTP client. */
  readonly fetch?: FetchLike | undefined;
  /** Deadline of a call in milliseconds, including retries, for calls that name none. Default: that of each call. */
  readonly timeoutMs?: number | undefined;
  /** The maximum number of retries of a call that is safe to repeat. Default 3. */
  readonly maxRetries?: number | undefined;
  /**
   * The longest time in milliseconds, in total, that a call waits when the service refuses it with a 429 that says when
   * to try again, for calls that name none. A refused call was not executed, so every call waits, commands included, except
   * an upload of a stream. 0: fail at once. Default: 60,000.
   */
  readonly maxWaitMs?: number | undefined;
  /**
   * The W3C `traceparent` of the caller, asked for each request, so that the spans of the service belong to the caller's
   * trace. Unnecessary where OpenTelemetry instruments HTTP requests by itself. A browser's WebSocket cannot send it.
   */
  readonly traceparent?: (() => string | undefined) | undefined;
}

/** A client of the service. Any number of concurrent calls can share one client. */
export class SvcClient {
  readonly sandboxes: Sandboxes;
  readonly sessions: Sessions;
  readonly tenants: Tenants;
  readonly account: Account;
  readonly keys: Keys;
  readonly secrets: Secrets;
  readonly templates: Templates;
  readonly usage: Usage;
  readonly billing: Billing;
  readonly dashboard: Dashboard;
  readonly workspaces: Workspaces;
  readonly #http: ClosableFetch;

  constructor(options: SvcClientOptions) {
    this.#http =
      options.fetch === undefined ? defaultFetch(options.ca) : { fetch: options.fetch, close };
    const transport = new Transport({
      baseUrl: options.baseUrl,
      fetch: this.#http.fetch,
      apiKey: options.apiKey,
      timeoutMs: options.timeoutMs,
      maxRetries: options.maxRetries,
      maxWaitMs: options.maxWaitMs,
      traceparent: options.traceparent,
    });
    this.sandboxes = new Sandboxes(transport, options.ca);
    this.sessions = new Sessions(transport, options.ca);
    this.tenants = new Tenants(transport);
    this.account = new Account(transport);
    this.keys = new Keys(transport);
    this.secrets = new Secrets(transport);
    this.templates = new Templates(transport);
    this.usage = new Usage(transport);
    this.billing = new Billing(transport);
    this.dashboard = new Dashboard(transport);
    this.workspaces = new Workspaces(transport);
  }

  /** Closes the connections when the calls in progress have ended. */
  async close(): Promise<void> {
    await this.#http.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

async function close(): Promise<void> {
  // The caller closes its own fetch.
}
