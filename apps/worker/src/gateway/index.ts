/**
 * The LLM gateway: agents in sandboxes reach their models through it, with a key that they never see.
 *
 * - `account`   the account that a session registers for its sandbox's address
 * - `gateway`, `registrations`, `request-handler`, `forward`  the server, its users, and the handling of a request
 * - `route`     the part of a request's path that names its endpoint
 * - `request/`  the allowed requests, and their form upstream
 * - `answer/`   responses, and failures in the vendors' formats
 * - `usage/`    the token counts of vendors
 * - `json/`     finds members in a stream of JSON
 */

export type { LlmAccount, LlmAccounts, LlmUsage } from './account.ts';
export { LlmGateway, type LlmGatewayOptions } from './gateway.ts';
export { GATEWAY_LIMITS, type GatewayLimits, UPSTREAM_CONNECT_MS } from './limits.ts';
export { llmRoute } from './route.ts';
