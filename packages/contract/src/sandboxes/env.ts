import { LIMITS } from '../limits.ts';
import { MAX_BYTES_KEYWORD, mapOf, NO_NUL } from '../schema.ts';

const POINTER_BYTES = 8;
const utf8 = new TextEncoder();

/** The size of an environment as the kernel counts it: each variable as `name=value` with NUL, and a pointer to it. */
export function environmentBytes(values: Readonly<Record<string, string>>): number {
  const sizes = Object.entries(values).map(
    ([name, value]) => utf8.encode(`${name}=${value}`).length + 1 + POINTER_BYTES,
  );
  return sizes.reduce((sum, bytes) => sum + bytes, 0);
}

/** Whether the processes of a session can have these values as environment variables. */
export function fitsEnvironment(values: Readonly<Record<string, string>>): boolean {
  return environmentBytes(values) <= LIMITS.sessionEnvBytes;
}

/** Environment variables, with names that a shell accepts and values without NUL. */
export const EnvVars = mapOf<string>(
  {
    type: 'string',
    maxLength: LIMITS.envValueChars,
    [MAX_BYTES_KEYWORD]: LIMITS.envValueBytes,
    pattern: NO_NUL,
  },
  {
    maxProperties: LIMITS.envVarsMax,
    propertyNames: { pattern: '^[A-Za-z_][A-Za-z0-9_]*$', maxLength: LIMITS.envNameChars },
    description: `Environment variables. Names that belong to the service are refused. A value has at most ${LIMITS.envValueChars} characters, and at most ${LIMITS.envValueBytes} bytes of UTF-8.`,
  },
);
