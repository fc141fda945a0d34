import {
  type AgentLlm,
  type AgentSecrets,
  type AgentSetup,
  dialectOf,
  fitsEnvironment,
  GUEST_LINK,
  type LlmDialect,
  type LlmVendor,
  type PlacedAgent,
  ServiceError,
} from '@svc/contract';
import { llmRoute } from '../gateway/index.ts';
import type { StartInput } from './agents.ts';

/** Variables that only the gateway may see. */
const GATEWAY_KEYS = ['LLM_API_KEY', 'LLM_BASE_URL', 'LLM_MODEL'];

export interface SetupSource {
  readonly placed: PlacedAgent;
  readonly input: StartInput;
  readonly secrets: AgentSecrets;
  /** The conversation to resume. */
  readonly conversation: string | undefined;
  /** Whether the files of a resumed session are in the guest already. */
  readonly restoreFiles: boolean;
}

/**
 * The configuration of an agent runtime.
 * @throws ServiceError `boot_failed` when no model is named, `secrets_too_large`
 */
export function setupOf(source: SetupSource): AgentSetup {
  const { placed, input, secrets, conversation, restoreFiles } = source;
  const { resume_id: resumeId } = placed;
  const { app, task } = input.agent_input ?? {};
  const env = environmentOf(secrets, input.env_vars);
  // A bundle may have been rotated since the control plane checked this.
  if (!fitsEnvironment(env)) throw new ServiceError('secrets_too_large');
  return {
    mode: placed.mode,
    agent: placed.kind,
    ...llmOf(placed, secrets),
    wireVersion: placed.wire_version,
    env,
    restoreFiles,
    ...(app === undefined ? {} : { app }),
    ...(task === undefined ? {} : { task }),
    ...(resumeId === undefined ? {} : { resumeId }),
    ...(conversation === undefined ? {} : { conversation }),
  };
}

/** The model that the agent uses, and the way to it. @throws ServiceError `boot_failed` when no model is named */
export function llmOf(placed: PlacedAgent, secrets: AgentSecrets): AgentLlm {
  // The placement of a session names the model that it began with.
  const model = secrets.llm.model ?? placed.model;
  if (model === undefined) throw new ServiceError('boot_failed', 'No model is named.');
  const dialect = dialectIn(placed.vendor, secrets);
  const route = llmRoute(dialect, secrets.llm.base_url);
  const gateway = `http://${GUEST_LINK.gateway}:${GUEST_LINK.llmGatewayPort}/${route}`;
  return { model, dialect, gateway };
}

/** The dialect that the agent uses with the gateway. */
export function dialectIn(vendor: LlmVendor, { llm }: AgentSecrets): LlmDialect {
  return dialectOf(vendor, llm.base_url !== undefined);
}

/** The environment of an agent's processes, without the gateway's variables. */
export function environmentOf(
  secrets: AgentSecrets,
  envVars: Readonly<Record<string, string>>,
): Record<string, string> {
  const entries = Object.entries({ ...secrets.env, ...envVars });
  return Object.fromEntries(entries.filter(([name]) => !GATEWAY_KEYS.includes(name)));
}
