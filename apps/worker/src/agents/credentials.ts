import type { AgentSecrets, LlmVendor } from '@svc/contract';
import { Secret } from '@svc/service-kit';
import { retry } from '@svc/service-kit/concurrency';
import type { TraceOrigin } from '@svc/service-kit/tracing';
import { mayPass } from '../control-plane/control-plane-transport.ts';
import type { LlmAccount, LlmAccounts, LlmUsage } from '../gateway/index.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';
import { dialectIn } from './setup.ts';

const FETCH_ATTEMPTS = 4;
const RESTORE_BACKOFF = { baseMs: 100, maxMs: 5_000 };

export interface AgentCredentialsOptions {
  readonly accounts: LlmAccounts;
  /** The address by which the gateway recognizes the sandbox. */
  readonly address: string;
  readonly vmId: string;
  readonly tenantId: string;
  readonly vendor: LlmVendor;
  /** Where the next request to the model belongs in a trace. */
  readonly origin?: () => TraceOrigin | undefined;
  /** Called with the tokens that each request to the model used. */
  readonly onUsage: (usage: LlmUsage) => void;
}

/** An agent's credentials for its model and its persistence endpoint, held in this process's memory only. */
export class AgentCredentials {
  readonly #options: AgentCredentialsOptions;
  #unregister: (() => void) | undefined;
  #authorization: Secret | undefined;
  readonly #known = Promise.withResolvers<void>();

  constructor(options: AgentCredentialsOptions) {
    this.#options = options;
  }

  /** Replaces the credentials in use. */
  use(secrets: AgentSecrets): void {
    const { accounts, address, vmId, tenantId, vendor, origin, onUsage } = this.#options;
    const { api_key, base_url } = secrets.llm;
    const account: LlmAccount = {
      vmId,
      tenantId,
      vendor,
      dialect: dialectIn(vendor, secrets),
      apiKey: new Secret(api_key),
      ...(base_url === undefined ? {} : { baseUrl: base_url }),
      ...(origin === undefined ? {} : { origin }),
      onUsage,
    };
    if (this.#unregister === undefined || !accounts.update(address, account)) {
      this.#unregister = accounts.register(address, account);
    }
    const header = secrets.persistence_auth_header;
    this.#authorization = header === undefined ? undefined : new Secret(header);
    this.#known.resolve();
  }

  /** Settles once this process has the credentials, which a restarted worker has yet to fetch. Never rejects. */
  get known(): Promise<void> {
    return this.#known.promise;
  }

  /** The `Authorization` header for the persistence endpoint; undefined when it has none, and until they are {@link known}. */
  get authorization(): Secret | undefined {
    return this.#authorization;
  }

  /** Forgets the credentials; from now on the gateway refuses the agent. */
  revoke(): void {
    this.#unregister?.();
    this.#unregister = undefined;
    this.#authorization = undefined;
  }
}

/** Fetches from the control plane what an agent needs for its start, with a few attempts. @throws ControlPlaneError */
export function fetchForStart<T>(fetch: () => Promise<T>, signal: AbortSignal): Promise<T> {
  return retry(fetch, { attempts: FETCH_ATTEMPTS, signal, isTransient: mayPass });
}

/**
 * Restores the credentials of an adopted agent in the background: retries until the agent is released, because its last
 * state, which an ending sandbox saves, may need them.
 */
export function restoreCredentials(
  { sandbox, closed }: { readonly sandbox: Pick<Sandbox, 'id'>; readonly closed: AbortSignal },
  restore: (signal: AbortSignal) => Promise<void>,
  onFault: (error: unknown, what: string) => void,
): void {
  const options = { ...RESTORE_BACKOFF, attempts: Number.POSITIVE_INFINITY, signal: closed };
  retry(() => restore(closed), options).catch((error) => {
    if (!closed.aborted) onFault(error, `restore the credentials of ${sandbox.id}`);
  });
}
