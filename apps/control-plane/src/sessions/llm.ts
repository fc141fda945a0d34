import {
  AGENT_VENDORS,
  type Agent,
  type AgentSecrets,
  dialectOf,
  LLM_BASE_URL_KEY,
  LLM_MODEL_KEY,
  type LlmDialect,
  type LlmVendor,
  modelProblem,
} from '@svc/contract';
import type { EgressPolicy } from '@svc/egress';
import type { SessionModel } from '@svc/store';
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
  const model = namedModel(choice, values.get(LLM_MODEL_KEY), models);
  checkModel(choice.agent, model, choice.model === undefined ? '/secrets' : '/llm/model');
  const ofBundles = choice.baseUrl === undefined ? values.get(LLM_BASE_URL_KEY) : undefined;
  // Its host may resolve to other addresses than when the bundle was written.
  if (ofBundles !== undefined) await checkBaseUrl(ofBundles, '/secrets', addresses);
  const dialect = dialectOf(choice.vendor, (choice.baseUrl ?? ofBundles) !== undefined);
  const problem = dialectProblem(choice.agent, dialect);
  if (problem !== undefined) rejectField('model_not_allowed', '/llm/vendor', problem);
  return model;
}

/**
 * The model of a running session with the present values of its bundles, which a rotation may have changed. If its agent
 * does not accept it, the session keeps the one it has; `problem` then says so, or that its agent cannot speak the
 * dialect of the endpoint.
 */
export function modelInUse(
  session: SessionModel,
  llm: Pick<AgentSecrets['llm'], 'base_url' | 'model'>,
  models: DefaultModels,
): { readonly model: string; readonly problem?: string } {
  const { agent, vendor, model: present } = session;
  const choice = { model: session.requested_model ?? undefined, vendor };
  const model = namedModel(choice, llm.model, models);
  if (model !== present && modelProblem(agent, model) !== undefined) {
    const problem = `${agent} does not accept the model of the rotated bundle (LLM_MODEL, else the vendor's default); the session keeps its model, ${present}.`;
    return { model: present, problem };
  }
  const problem = dialectProblem(agent, dialectOf(vendor, llm.base_url !== undefined));
  if (problem === undefined) return { model };
  return {
    model,
    problem: `${problem}: without LLM_BASE_URL, its tasks fail until the bundle is rotated again.`,
  };
}

/** The model of the request, else of the bundles, else the vendor's default. */
function namedModel(
  { model, vendor }: Pick<LlmChoice, 'model' | 'vendor'>,
  ofBundles: string | undefined,
  models: DefaultModels,
): string {
  const named = model ?? ofBundles;
  return named === undefined || named === '' ? models[vendor] : named;
}

function dialectProblem(agent: Agent, dialect: LlmDialect): string | undefined {
  const spoken = AGENT_VENDORS[agent];
  const speaks = spoken === undefined || spoken === dialect;
  return speaks ? undefined : `${agent} only speaks the API of ${spoken}`;
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
