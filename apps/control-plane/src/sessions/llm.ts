import {
  AGENT_VENDORS,
  type Agent,
  dialectOf,
  LLM_BASE_URL_KEY,
  LLM_MODEL_KEY,
  type LlmVendor,
  modelProblem,
} from '@svc/contract';
import type { EgressPolicy } from '@svc/egress';
import type { DefaultModels } from '../agents/default-models.ts';
import { rejectField } from '../reject-field.ts';

/** The model that a session requests. */
export interface LlmChoice {
  readonly agent: Agent;
  readonly vendor: LlmVendor;
  readonly model: string | undefined;
  readonly baseUrl: string | undefined;
}

/** Checks only the request. @throws ServiceError `llm_model_invalid`, `model_not_allowed`, `llm_base_url_refused` */
export async function checkLlmChoice(choice: LlmChoice, addresses: EgressPolicy): Promise<void> {
  if (choice.model !== undefined) checkModel(choice.agent, choice.model, '/llm/model');
  if (choice.baseUrl !== undefined) await checkBaseUrl(choice.baseUrl, '/llm/base_url', addresses);
}

/**
 * The model of a session: from the request, else from its bundles, else the vendor's default. Checks the
 * rules about the request and its bundles together.
 * @throws ServiceError `llm_model_invalid`, `model_not_allowed`, `llm_base_url_refused`
 */
export async function chooseModel(
  choice: LlmChoice,
  values: ReadonlyMap<string, string>,
  models: DefaultModels,
  addresses: EgressPolicy,
): Promise<string> {
  const named = choice.model ?? values.get(LLM_MODEL_KEY);
  const model = named === undefined || named === '' ? models[choice.vendor] : named;
  checkModel(choice.agent, model, choice.model === undefined ? '/secrets' : '/llm/model');
  const ofBundles = choice.baseUrl === undefined ? values.get(LLM_BASE_URL_KEY) : undefined;
  // Its host may resolve to other addresses than when the bundle was written.
  if (ofBundles !== undefined) await checkBaseUrl(ofBundles, '/secrets', addresses);
  const dialect = dialectOf(choice.vendor, (choice.baseUrl ?? ofBundles) !== undefined);
  const spoken = AGENT_VENDORS[choice.agent];
  if (spoken !== undefined && spoken !== dialect) {
    rejectField(
      'model_not_allowed',
      '/llm/vendor',
      `${choice.agent} only speaks the API of ${spoken}`,
    );
  }
  return model;
}

function checkModel(agent: Agent, model: string, path: string): void {
  const problem = modelProblem(agent, model);
  // A model that no agent accepts is not a model name.
  if (problem !== undefined && modelProblem('deictic', model) !== undefined) {
    rejectField('llm_model_invalid', path);
  }
  if (problem !== undefined) rejectField('model_not_allowed', path);
}

async function checkBaseUrl(url: string, path: string, addresses: EgressPolicy): Promise<void> {
  const problem = await addresses.problemOf(url);
  if (problem !== undefined) rejectField('llm_base_url_refused', path, problem);
}
