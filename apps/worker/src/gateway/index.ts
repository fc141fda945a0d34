/**
 * The LLM gateway: agents in sandboxes reach their models through it, with a key that they never see.
 */

export type { LlmAccount, LlmAccounts, LlmUsage } from './account.ts';
