/** `POST /v1/sessions` and `POST /v1/sessions/resume`. */

import { type Static, Type } from 'typebox';
import { AGENTS, MODEL_PATTERN } from '../agents.ts';
import { LIMITS } from '../limits.ts';
import { sizeFields } from '../sandboxes/size.ts';
import { failsWith, NO_NUL } from '../schema.ts';
import { SESSION_TEMPLATES } from '../templates.ts';
import { LLM_VENDORS } from '../vendors.ts';
import { SessionCapabilitySets } from './app.ts';

const Identifier = Type.String({ pattern: '^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$' });

const Ttl = Type.Integer({
  minimum: 1,
  default: LIMITS.sessionTtlSecondsDefault,
  description: `Lifetime of the sandbox. Larger values are clamped to ${LIMITS.sessionTtlSecondsCap}.`,
});

export const CreateSessionRequest = Type.Object(
  {
    agent: Type.Object({
      kind: Type.Enum([...AGENTS], failsWith('session_agent_unknown')),
      version: Type.Optional(
        Type.String({
          minLength: 1,
          maxLength: 128,
          pattern: NO_NUL,
          description: 'A build of the agent: one of `versions` in the catalogue. Default: any.',
        }),
      ),
    }),
    app: Type.Object({
      id: Identifier,
      set_id: Type.Optional(
        Type.String({ ...Identifier, default: 'default', description: 'Capability set.' }),
      ),
      capability_sets: Type.Optional(SessionCapabilitySets),
    }),
    template: Type.Enum([...SESSION_TEMPLATES], failsWith('session_template_unknown')),
    llm: Type.Object({
      vendor: Type.Enum([...LLM_VENDORS]),
      model: Type.Optional(
        Type.String({ pattern: MODEL_PATTERN, ...failsWith('llm_model_invalid') }),
      ),
      base_url: Type.Optional(
        Type.String({ maxLength: 2048, description: 'HTTPS, public addresses only.' }),
      ),
    }),
    secrets: Type.Optional(
      Type.Array(Type.String({ maxLength: 256 }), {
        maxItems: LIMITS.bundlesPerSession,
        description: `Names of secret bundles; together they hold \`LLM_API_KEY\`, and at most ${LIMITS.sessionEnvBytes} bytes of values that are environment variables.`,
      }),
    ),
    user_id: Type.String({
      minLength: 1,
      maxLength: 128,
      pattern: NO_NUL,
      description: 'Attribution only.',
    }),
    ttl_seconds: Type.Optional(Ttl),
    ...sizeFields,
  },
  { title: 'CreateSessionRequest' },
);
export type CreateSessionRequest = Static<typeof CreateSessionRequest>;

export const ResumeSessionRequest = Type.Object(
  {
    chat_session_id: Type.String({ minLength: 1, maxLength: 128 }),
    ttl_seconds: Type.Optional(Ttl),
  },
  { title: 'ResumeSessionRequest' },
);
export type ResumeSessionRequest = Static<typeof ResumeSessionRequest>;
