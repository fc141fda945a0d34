import {
  type AgentSecrets,
  type AgentSetup,
  LLM_GATEWAY_PORT,
  type PlacedAgent,
  type PlaceSandboxRequest,
  ServiceError,
} from '@svc/contract';
import { dialectIn, environmentOf } from './access.ts';

/** The host as every guest sees it. */
const GATEWAY_HOST = '172.30.0.1';

/** What a runtime is configured with. @throws ServiceError `boot_failed` when no model is named */
export function setupOf(
  placed: PlacedAgent,
  request: Pick<PlaceSandboxRequest, 'env_vars' | 'agent_input'>,
  secrets: AgentSecrets,
  earlier: { readonly conversation: string | undefined; readonly restoreFiles: boolean },
): AgentSetup {
  const model = modelOf(placed, secrets);
  if (model === undefined) throw new ServiceError('boot_failed', 'No model is named.');
  const dialect = dialectIn(placed.vendor, secrets);
  const { resume_id: resumeId } = placed;
  const { app, task } = request.agent_input ?? {};
  return {
    mode: placed.mode,
    agent: placed.kind,
    model,
    dialect,
    gateway: `http://${GATEWAY_HOST}:${LLM_GATEWAY_PORT}/${dialect}`,
    wireVersion: placed.wire_version,
    env: environmentOf(secrets, request.env_vars),
    restoreFiles: earlier.restoreFiles,
    ...(app === undefined ? {} : { app }),
    ...(task === undefined ? {} : { task }),
    ...(resumeId === undefined ? {} : { resumeId }),
    ...(earlier.conversation === undefined ? {} : { conversation: earlier.conversation }),
  };
}

/** The model that the agent uses. */
export function modelOf(placed: PlacedAgent, secrets: AgentSecrets): string | undefined {
  return placed.model ?? secrets.llm.model;
}
