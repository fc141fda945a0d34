import type { LlmDialect, LlmVendor } from '@svc/contract';
import type { Secret } from '@svc/service-kit';
import type { TraceOrigin } from '@svc/service-kit/tracing';

/** Tokens of one request, as counted by the vendor. */
export interface LlmUsage {
  /** All input tokens, including cached ones. */
  readonly input_tokens: number;
  readonly output_tokens: number;
  /** The cached part of the input; absent if the vendor does not report it. */
  readonly cached_input_tokens?: number;
  readonly model?: string;
}

/** A sandbox's access to its model. */
export interface LlmAccount {
  readonly vmId: string;
  readonly tenantId: string;
  readonly vendor: LlmVendor;
  /** The only dialect allowed to the sandbox: `dialectOf(vendor, baseUrl !== undefined)`. */
  readonly dialect: LlmDialect;
  readonly apiKey: Secret;
  /** The customer's own endpoint instead of the vendor's. Checked for every connection. */
  readonly baseUrl?: string;
  /** Where the next request belongs in a trace. */
  readonly origin?: () => TraceOrigin | undefined;
  /** Called once per request that the vendor counted, even if it was aborted. */
  onUsage(usage: LlmUsage): void;
}

/** The accounts of sandboxes, by address. */
export interface LlmAccounts {
  /**
   * Lets the sandbox at `address` (`host` of its VM) reach its model. The returned function revokes that and aborts its
   * requests; it does nothing once another account is registered at the address.
   */
  register(address: string, account: LlmAccount): () => void;
  /**
   * Replaces the account at `address` from the next request on; running requests keep the old one. If the endpoint changes,
   * requests for the old one keep the old account until the first request for the new one, since a running task does not
   * change its endpoint. The function returned by `register` stays valid. False when no account is registered there.
   */
  update(address: string, account: LlmAccount): boolean;
}
