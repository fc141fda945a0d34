/**
 * The contract of the service: wire schemas, error codes, limits, states, and pure rules for them.
 * It imports no other package of the service and runs in Node and in browsers.
 *
 * - `errors/`     the catalogue of error codes, the problem body, {@link ServiceError}
 * - `sandboxes/`, `sessions/`, `accounts/`, `billing/`, `secrets/`, `catalogue/`, `usage/`, `workspaces/`  public routes, one file per resource or operation
 * - `internal/`   the API between the control plane, runtime hosts and workers
 * - `guest/`      the link between a worker and the agent runtime in a guest
 * - `limits`, `states`, `ids`, `paths`, `templates`, `agents`, `agent-tools`, `vendors`, `reserved-keys`  rules that several components share
 *
 * Request schemas check form. If a failure has its own code, the schema names it (`failsWith`) and the HTTP layer sends it.
 */

export type { Static } from 'typebox';
export * from './accounts/index.ts';
export * from './agent-tools.ts';
export * from './agents.ts';
export * from './billing/index.ts';
export * from './catalogue/index.ts';
export * from './errors/catalogue.ts';
export * from './errors/problem.ts';
export * from './errors/service-error.ts';
export * from './guest/index.ts';
export * from './ids.ts';
export * from './internal/index.ts';
export * from './limits.ts';
export * from './paths.ts';
export * from './reserved-keys.ts';
export * from './sandboxes/index.ts';
export * from './schema.ts';
export * from './secrets/index.ts';
export * from './sessions/index.ts';
export * from './states.ts';
export * from './templates.ts';
export * from './usage/index.ts';
export * from './vendors.ts';
export * from './workspaces/index.ts';
