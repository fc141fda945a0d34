/**
 * Requests to addresses that customers name: what they may be, checked when they are given and again at each connection.
 *
 * - `egress-policy`, `public-addresses`  the rules
 * - `egress`, `guarded-connector`        connections that keep them
 */

export {
  createEgress,
  type Egress,
  type EgressOptions,
  type EgressRequest,
  type EgressResponse,
} from './egress.ts';
export { EgressError, type EgressErrorCode } from './egress-error.ts';
export { type AllowedHost, EgressPolicy, type Resolve } from './egress-policy.ts';
export { isPublicAddress } from './public-addresses.ts';
