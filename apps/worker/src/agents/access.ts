import { type AgentSecrets, dialectOf, type LlmDialect, type LlmVendor } from '@svc/contract';
import { Secret } from '@svc/service-kit';
import type { LlmAccount, LlmAccounts, LlmUsage } from '../gateway/index.ts';

/** Values that are the gateway's alone. */
const GATEWAY_KEYS = ['LLM_API_KEY', 'LLM_BASE_URL', 'LLM_MODEL'];

export interface AgentAccessOptions {
  readonly accounts: LlmAccounts;
  /** By which the gateway knows the sandbox. */
  readonly address: string;
  readonly vmId: string;
  readonly vendor: LlmVendor;
  readonly onUsage: (usage: LlmUsage) => void;
}

/** An agent's credentials, in this process's memory only: at the gateway, and for its persistence endpoint. */
export class AgentAccess {
  readonly #options: AgentAccessOptions;
  #withdraw: (() => void) | undefined;
  #authorization: Secret | undefined;

  constructor(options: AgentAccessOptions) {
    this.#options = options;
  }

  /** Takes credentials into use in place of earlier ones. */
  take(secrets: AgentSecrets): void {
    const { accounts, address, vmId, vendor, onUsage } = this.#options;
    const { api_key, base_url } = secrets.llm;
    const account: LlmAccount = {
      vmId,
      vendor,
      dialect: dialectIn(vendor, secrets),
      apiKey: new Secret(api_key),
      ...(base_url === undefined ? {} : { baseUrl: base_url }),
      onUsage,
    };
    if (this.#withdraw === undefined || !accounts.update(address, account)) {
      this.#withdraw = accounts.register(address, account);
    }
    const header = secrets.persistence_auth_header;
    this.#authorization = header === undefined ? undefined : new Secret(header);
  }

  /** Of the persistence endpoint. */
  get authorization(): Secret | undefined {
    return this.#authorization;
  }

  /** Forgets them; the agent reaches its model no more. */
  withdraw(): void {
    this.#withdraw?.();
    this.#withdraw = undefined;
    this.#authorization = undefined;
  }
}

/** How the agent has to speak to the gateway. */
export function dialectIn(vendor: LlmVendor, { llm }: AgentSecrets): LlmDialect {
  return dialectOf(vendor, llm.base_url !== undefined);
}

/** The environment of an agent's processes: nothing of the gateway's. */
export function environmentOf(
  secrets: AgentSecrets,
  envVars: Readonly<Record<string, string>>,
): Record<string, string> {
  const entries = Object.entries({ ...secrets.env, ...envVars });
  return Object.fromEntries(entries.filter(([name]) => !GATEWAY_KEYS.includes(name)));
}
