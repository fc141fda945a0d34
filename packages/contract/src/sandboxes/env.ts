import { LIMITS } from '../limits.ts';
import { mapOf, NO_NUL } from '../schema.ts';

/** Environment variables, with names that a shell accepts and values without NUL. */
export const EnvVars = mapOf<string>(
  { type: 'string', maxLength: LIMITS.envValueChars, pattern: NO_NUL },
  {
    maxProperties: LIMITS.envVarsMax,
    propertyNames: { pattern: '^[A-Za-z_][A-Za-z0-9_]*$', maxLength: LIMITS.envNameChars },
    description: 'Environment variables. Names that belong to the service are refused.',
  },
);
