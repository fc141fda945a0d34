import type { LlmDialect, LlmVendor } from '@svc/contract';
import type { Secret } from '@svc/service-kit';

/** Tokens of one request, as the vendor counts them. */
export interface LlmUsage {
  /** All of the input, with what came from a cache. */
  readonly input_tokens: number;
  readonly output_tokens: number;
  /** What of the input came from a cache; absent when the vendor did not say. */
  readonly cached_input_tokens?: number;
  readonly model?: string;
}

/** How the agent of one sandbox reaches its model. */
export interface LlmAccount {
  readonly vmId: string;
  readonly vendor: LlmVendor;
  /** The only one that the sandbox may speak: `dialectOf(vendor, baseUrl !== undefined)`. */
  readonly dialect: LlmDialect;
  readonly apiKey: Secret;
  /** The customer's own endpoint instead of the vendor's. Checked again at each connection. */
  readonly baseUrl?: string;
  /** Called once per request that the vendor counted, also for one that was broken off. */
  onUsage(usage: LlmUsage): void;
}

/** Whose requests come from which address. */
export interface LlmAccounts {
  /**
   * Lets the sandbox at `address` (`host` of its VM) reach its model. The function that it returns takes that back and
   * breaks off what is under way; it does nothing once another account stands at the address.
   */
  register(address: string, account: LlmAccount): () => void;
  /**
   * Puts another account in the place of the one at `address`, from the next request on; what is under way goes on with
   * the old one. The function from `register` stays good for the new one. False when none is registered there.
   */
  update(address: string, account: LlmAccount): boolean;
}
