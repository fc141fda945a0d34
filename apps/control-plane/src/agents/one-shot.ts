import {
  type Agent,
  type CreateSandboxRequest,
  isAgent,
  LLM_BASE_URL_KEY,
  type LlmVendor,
  modelProblem,
  type PlacedAgent,
  vendorOfModel,
} from '@svc/contract';
import type { EgressPolicy } from '@svc/egress';
import { refuse } from '../refuse.ts';
import type { DefaultModels } from './models.ts';
import type { AgentOnSandbox } from './on-sandbox.ts';

/** The vendor that each agent belongs to; deictic takes any. */
const OWN_VENDOR: Readonly<Record<Agent, LlmVendor | undefined>> = {
  deictic: undefined,
  'claude-code': 'anthropic',
  codex: 'openai',
};

/** What a one-shot agent is and where its model is. */
type AgentFields = Pick<CreateSandboxRequest, 'agent' | 'llm_key' | 'model' | 'env_vars'>;

/** @throws ServiceError `llm_key_required`, `model_required`, `model_not_allowed` */
export function checkOneShotAgent(request: AgentFields, defaults: DefaultModels): void {
  const { agent, llm_key, model } = request;
  if (agent === undefined || !isAgent(agent)) return;
  if (llm_key === undefined || llm_key === '') refuse('llm_key_required', '/llm_key');
  const problem = modelProblem(agent, model);
  if (problem !== undefined) refuse(problem, '/model');
  modelOf(agent, request, defaults);
}

/** Its own model endpoint, which for an agent is no environment variable. @throws ServiceError `llm_base_url_refused` */
export async function checkOneShotBaseUrl(
  request: AgentFields,
  addresses: EgressPolicy,
): Promise<void> {
  const baseUrl = baseUrlOf(request);
  const problem = baseUrl === undefined ? undefined : await addresses.problemOf(baseUrl);
  if (problem !== undefined) {
    refuse('llm_base_url_refused', `/env_vars/${LLM_BASE_URL_KEY}`, problem);
  }
}

/** The agent that a checked request asks for, if it asks for one. */
export function oneShotAgent(
  tenantId: string,
  request: CreateSandboxRequest,
  defaults: DefaultModels,
): AgentOnSandbox | undefined {
  const { agent, llm_key: llmKey } = request;
  if (agent === undefined || !isAgent(agent) || llmKey === undefined) return undefined;
  const placed: PlacedAgent = {
    kind: agent,
    mode: 'one_shot',
    ...modelOf(agent, request, defaults),
    wire_version: request.wire_version ?? 2,
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

/** The variables of the sandbox; the model endpoint of its agent is the gateway's business. */
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
  const own = OWN_VENDOR[agent];
  const { model } = request;
  if (own === undefined) {
    const named = vendorOfModel(model ?? '');
    // An endpoint of the customer's own speaks the OpenAI dialect, whatever its models are called.
    const vendor = named ?? (baseUrlOf(request) === undefined ? undefined : 'openai');
    if (model === undefined || vendor === undefined) refuse('model_not_allowed', '/model');
    return { vendor, model };
  }
  const chosen = model === undefined || model === '' ? defaults[own] : model;
  const problem = modelProblem(agent, chosen);
  if (problem !== undefined) refuse(problem, '/model');
  return { vendor: own, model: chosen };
}
