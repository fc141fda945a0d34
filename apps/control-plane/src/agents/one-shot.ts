import {
  AGENT_VENDORS,
  type Agent,
  type CreateSandboxRequest,
  isAgent,
  LLM_BASE_URL_KEY,
  type LlmVendor,
  llmKeyProblem,
  modelProblem,
  type PlacedAgent,
  vendorOfModel,
} from '@svc/contract';
import type { EgressPolicy } from '@svc/egress';
import { rejectField } from '../reject-field.ts';
import type { AgentPlacement } from './agent-placement.ts';
import { isBlankKey } from './blank-key.ts';
import type { DefaultModels } from './default-models.ts';

/** The fields about a one-shot agent and its model. */
type AgentFields = Pick<CreateSandboxRequest, 'agent' | 'llm_key' | 'model' | 'env_vars'>;

/** @throws ServiceError `llm_key_required`, `validation_failed`, `model_required`, `model_not_allowed` */
export function checkOneShotAgent(request: AgentFields, defaults: DefaultModels): void {
  const { agent, llm_key, model } = request;
  if (agent === undefined || !isAgent(agent)) return;
  if (llm_key === undefined || isBlankKey(llm_key)) rejectField('llm_key_required', '/llm_key');
  const keyProblem = llmKeyProblem(llm_key);
  if (keyProblem !== undefined) rejectField('validation_failed', '/llm_key', keyProblem);
  const problem = modelProblem(agent, model);
  if (problem !== undefined) rejectField(problem, '/model');
  modelOf(agent, request, defaults);
}

/** Checks the model endpoint that `env_vars` name for an agent. @throws ServiceError `llm_base_url_refused` */
export async function checkOneShotBaseUrl(
  request: AgentFields,
  addresses: EgressPolicy,
): Promise<void> {
  const baseUrl = baseUrlOf(request);
  const problem = baseUrl === undefined ? undefined : await addresses.problemOf(baseUrl);
  if (problem !== undefined) {
    rejectField('llm_base_url_refused', `/env_vars/${LLM_BASE_URL_KEY}`, problem);
  }
}

/** The agent of a checked request, if any. */
export function oneShotAgent(
  tenantId: string,
  request: CreateSandboxRequest,
  defaults: DefaultModels,
): AgentPlacement | undefined {
  const { agent, llm_key: llmKey } = request;
  if (agent === undefined || !isAgent(agent) || llmKey === undefined) return undefined;
  const placed: PlacedAgent = {
    kind: agent,
    mode: 'one_shot',
    ...modelOf(agent, request, defaults),
    wire_version: request.wire_version ?? 2,
    ...(request.task === undefined ? { interactive: true } : {}),
    ...(request.session_id === undefined ? {} : { resume_id: request.session_id }),
    ...(request.persistence_url === undefined
      ? {}
      : { persistence_url: new URL(request.persistence_url).href }),
  };
  return {
    placed,
    input: {
      ...(request.app_json === undefined ? {} : { app: request.app_json }),
      ...(request.task === undefined ? {} : { task: request.task }),
    },
    secrets: {
      kind: 'one_shot',
      tenantId,
      llmKey,
      baseUrl: baseUrlOf(request),
      persistenceAuthHeader: request.persistence_auth_header,
    },
  };
}

/** The environment variables of the sandbox. The model endpoint of an agent goes to the gateway instead. */
export function environmentOf({
  agent,
  env_vars = {},
}: Pick<CreateSandboxRequest, 'agent' | 'env_vars'>): Record<string, string> {
  if (agent === undefined) return env_vars;
  const { [LLM_BASE_URL_KEY]: _baseUrl, ...rest } = env_vars;
  return rest;
}

function baseUrlOf({ agent, env_vars = {} }: AgentFields): string | undefined {
  if (agent === undefined || !Object.hasOwn(env_vars, LLM_BASE_URL_KEY)) return undefined;
  return env_vars[LLM_BASE_URL_KEY];
}

function modelOf(
  agent: Agent,
  request: AgentFields,
  defaults: DefaultModels,
): { vendor: LlmVendor; model: string } {
  const own = AGENT_VENDORS[agent];
  const { model } = request;
  if (own === undefined) {
    const named = vendorOfModel(model ?? '');
    // A customer's own endpoint uses the OpenAI dialect, regardless of the names of its models.
    const vendor = named ?? (baseUrlOf(request) === undefined ? undefined : 'openai');
    if (model === undefined || vendor === undefined) rejectField('model_not_allowed', '/model');
    return { vendor, model };
  }
  const chosen = model === undefined || model === '' ? defaults[own] : model;
  const problem = modelProblem(agent, chosen);
  if (problem !== undefined) rejectField(problem, '/model');
  return { vendor: own, model: chosen };
}
