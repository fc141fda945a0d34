/** `POST /v1/sandboxes`. */

import { type Static, Type } from 'typebox';
import { AGENTS } from '../agents.ts';
import { SandboxId } from '../ids.ts';
import { LIMITS } from '../limits.ts';
import { FreeObject, failsWith } from '../schema.ts';
import { ScopeId } from '../scope-id.ts';
import { SANDBOX_STATES } from '../states.ts';
import { TEMPLATES } from '../templates.ts';
import { AppJson } from './app-json.ts';
import { EnvVars } from './env.ts';
import { sizeFields } from './size.ts';

export const CreateSandboxRequest = Type.Object(
  {
    // Any string passes here: an unknown name is answered with 501 `unknown_template`, not as a validation failure.
    template: Type.String({
      maxLength: 128,
      examples: [...TEMPLATES],
      description: `One of ${TEMPLATES.join(', ')}.`,
    }),
    agent: Type.Optional(
      Type.String({
        maxLength: 128,
        examples: [...AGENTS],
        description: `One of ${AGENTS.join(', ')}. Needs \`llm_key\`.`,
      }),
    ),
    llm_key: Type.Optional(
      Type.String({
        maxLength: LIMITS.llmKeyChars,
        description:
          'Required when `agent` is set. Only characters that an HTTP header can contain. Never returned.',
      }),
    ),
    task: Type.Optional(
      Type.String({ maxLength: 900_000, description: 'One-shot prompt of the agent.' }),
    ),
    model: Type.Optional(
      Type.String({ maxLength: 256, description: 'Model of the agent. Required for deictic.' }),
    ),
    session_id: Type.Optional(
      Type.String({ maxLength: 128, description: 'Resume identifier of codex.' }),
    ),
    wire_version: Type.Optional(
      Type.Unsafe<1 | 2>({
        type: 'integer',
        enum: [1, 2],
        default: 2,
        ...failsWith('wire_version_invalid'),
      }),
    ),
    idle_timeout_seconds: Type.Optional(
      Type.Integer({ minimum: 1, default: LIMITS.idleTimeoutSecondsDefault }),
    ),
    max_lifetime_seconds: Type.Optional(
      Type.Integer({
        minimum: 1,
        default: LIMITS.maxLifetimeSecondsDefault,
        description: `Larger values are clamped to ${LIMITS.maxLifetimeSecondsCap}.`,
      }),
    ),
    workspace_enabled: Type.Optional(
      Type.Boolean({
        default: false,
        description: 'Mounts a workspace at `/workspace`. Needs `app_id` and `capset_id`.',
      }),
    ),
    app_id: Type.Optional(ScopeId),
    capset_id: Type.Optional(ScopeId),
    app_json: Type.Optional(AppJson),
    persistence_url: Type.Optional(
      Type.String({ maxLength: 2048, description: 'HTTPS, public addresses only.' }),
    ),
    persistence_auth_header: Type.Optional(
      Type.String({
        maxLength: 8192,
        pattern: '^[\\t\\x20-\\x7e]*$',
        description: 'Sent verbatim as the Authorization header.',
      }),
    ),
    env_vars: Type.Optional(EnvVars),
    metadata: Type.Optional({
      ...FreeObject,
      description: `Returned with the sandbox. At most ${LIMITS.metadataBytes} bytes of JSON.`,
    }),
    ...sizeFields,
  },
  { title: 'CreateSandboxRequest' },
);
export type CreateSandboxRequest = Static<typeof CreateSandboxRequest>;

export const CreateSandboxResponse = Type.Object(
  {
    vm_id: SandboxId,
    state: Type.Enum([...SANDBOX_STATES]),
    host_port: Type.Integer({ description: "Port on the worker that reaches the sandbox's SSH." }),
    endpoint: Type.Optional(Type.String({ description: 'Address the worker reports for itself.' })),
  },
  { title: 'CreateSandboxResponse' },
);
export type CreateSandboxResponse = Static<typeof CreateSandboxResponse>;

/**
 * The effective idle timeout and lifetime, in seconds. Lifetimes are clamped to the cap, and so is the idle timeout:
 * no sandbox lives long enough to reach a longer one.
 */
export function effectiveTimeouts(
  request: Pick<CreateSandboxRequest, 'idle_timeout_seconds' | 'max_lifetime_seconds'>,
): { idleTimeoutSeconds: number; maxLifetimeSeconds: number } {
  const clamp = (value: number): number => Math.min(value, LIMITS.maxLifetimeSecondsCap);
  return {
    idleTimeoutSeconds: clamp(request.idle_timeout_seconds ?? LIMITS.idleTimeoutSecondsDefault),
    maxLifetimeSeconds: clamp(request.max_lifetime_seconds ?? LIMITS.maxLifetimeSecondsDefault),
  };
}
