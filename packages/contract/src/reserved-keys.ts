/** Environment variable names that are reserved for the service and refused in `env_vars` and in secret bundles. */

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

/** The reserved names in `values`, in their order. Matching is case-sensitive. */
export function reservedKeysIn(values: Readonly<Record<string, string>>): string[] {
  return Object.keys(values).filter((name) => RESERVED.has(name));
}
