/** Environment names that belong to the service and are refused in `env_vars` and in secret bundles. */

export const RESERVED_KEYS = [
  'AGENT_TYPE',
  'LLM_KEY',
  'TASK',
  'SESSION_ID',
  'AGENT_CMD',
  'AGENT_SESSION_MODE',
  'SVC_PERSISTENCE_URL',
  'SVC_PERSISTENCE_AUTH_HEADER',
] as const;

const RESERVED: ReadonlySet<string> = new Set(RESERVED_KEYS);

/** Names of `values` that are reserved, in the order they were given. Matching is exact in case. */
export function reservedKeysIn(values: Readonly<Record<string, string>>): string[] {
  return Object.keys(values).filter((name) => RESERVED.has(name));
}
