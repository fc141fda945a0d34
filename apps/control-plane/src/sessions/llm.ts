import {
  type Agent,
  dialectOf,
  LLM_BASE_URL_KEY,
  LLM_MODEL_KEY,
  type LlmDialect,
  type LlmVendor,
  modelProblem,
} from '@svc/contract';
import type { EgressPolicy } from '@svc/egress';
import type { DefaultModels } from '../agents/models.ts';
import { refuse } from '../refuse.ts';

/** What a session asks of its model. */
export interface LlmWish {
  readonly agent: Agent;
  readonly vendor: LlmVendor;
  readonly model: string | undefined;
  readonly baseUrl: string | undefined;
}

/** The dialects that an agent can speak; deictic speaks them all. */
const DIALECT: Readonly<Record<Agent, LlmDialect | undefined>> = {
  deictic: undefined,
  'claude-code': 'anthropic',
  codex: 'openai',
};

/** The rules over the request alone. @throws ServiceError `llm_model_invalid`, `model_not_allowed`, `llm_base_url_refused` */
export async function checkLlmWish(wish: LlmWish, addresses: EgressPolicy): Promise<void> {
  if (wish.model !== undefined) checkModel(wish.agent, wish.model, '/llm/model');
  if (wish.baseUrl !== undefined) await checkBaseUrl(wish.baseUrl, '/llm/base_url', addresses);
}

/**
 * The model of a session: the request's, else that of its bundles, else the vendor's default. The rules over
 * request and bundles together are checked on the way.
 * @throws ServiceError `llm_model_invalid`, `model_not_allowed`, `llm_base_url_refused`
 */
export async function chooseModel(
  wish: LlmWish,
  values: ReadonlyMap<string, string>,
  models: DefaultModels,
  addresses: EgressPolicy,
): Promise<string> {
  const named = wish.model ?? values.get(LLM_MODEL_KEY);
  const model = named === undefined || named === '' ? models[wish.vendor] : named;
  checkModel(wish.agent, model, wish.model === undefined ? '/secrets' : '/llm/model');
  const ofBundles = wish.baseUrl === undefined ? values.get(LLM_BASE_URL_KEY) : undefined;
  // The names behind it may lead elsewhere than when the bundle was written.
  if (ofBundles !== undefined) await checkBaseUrl(ofBundles, '/secrets', addresses);
  const dialect = dialectOf(wish.vendor, (wish.baseUrl ?? ofBundles) !== undefined);
  const spoken = DIALECT[wish.agent];
  if (spoken !== undefined && spoken !== dialect) {
    refuse('model_not_allowed', '/llm/vendor', `${wish.agent} only speaks the API of ${spoken}`);
  }
  return model;
}

function checkModel(agent: Agent, model: string, path: string): void {
  const problem = modelProblem(agent, model);
  // What breaks the rule for every agent's models is no model name at all.
  if (problem !== undefined && modelProblem('deictic', model) !== undefined) {
    refuse('llm_model_invalid', path);
  }
  if (problem !== undefined) refuse('model_not_allowed', path);
}

async function checkBaseUrl(url: string, path: string, addresses: EgressPolicy): Promise<void> {
  const problem = await addresses.problemOf(url);
  if (problem !== undefined) refuse('llm_base_url_refused', path, problem);
}
