/**
 * The LLM gateway: agents in sandboxes reach their models through it, with a key that they never see.
 *
 * - `account`   what a session registers: whose requests come from which address
 * - `gateway`, `registrations`, `forward`  the server, who may use it, and one request through it
 * - `request/`  what may be asked, and in which form it is passed on
 * - `answer/`   how answers come back, and failures in the vendors' forms
 * - `usage/`    the tokens that vendors count
 * - `json/`     members of JSON that goes by
 */

export type { LlmAccount, LlmAccounts, LlmUsage } from './account.ts';
export { LlmGateway, type LlmGatewayOptions } from './gateway.ts';
export { GATEWAY_LIMITS, type GatewayLimits, UPSTREAM_CONNECT_MS } from './limits.ts';
