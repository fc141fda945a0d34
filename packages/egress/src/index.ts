/**
 * Connections to addresses that customers name. The rules hold when a URL is given and again at each connection.
 *
 * - `egress-policy`                which URLs and addresses are allowed
 * - `egress`, `guarded-connector`  connections that enforce the policy
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
