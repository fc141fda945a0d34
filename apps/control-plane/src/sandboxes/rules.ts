import {
  type CreateSandboxRequest,
  type ErrorCode,
  isAgent,
  isMultiAgent,
  isTemplate,
  modelProblem,
  reservedKeysIn,
  ServiceError,
} from '@svc/contract';
import type { EgressPolicy } from '@svc/egress';

/**
 * The rules of a request whose form is right, in their order: unknown names, then what the fields
 * say together, then what this installation does not offer yet.
 */
export async function checkCreateRules(
  request: CreateSandboxRequest,
  egress: EgressPolicy,
): Promise<void> {
  checkNames(request);
  checkAgent(request);
  checkEnvironment(request);
  checkApp(request);
  checkWorkspace(request);
  await checkPersistence(request, egress);
  checkOffered(request);
}

function checkNames({ template, agent }: CreateSandboxRequest): void {
  if (!isTemplate(template)) fail('unknown_template', '/template');
  if (agent !== undefined && !isAgent(agent)) fail('unknown_agent', '/agent');
}

function checkAgent({ agent, llm_key, model }: CreateSandboxRequest): void {
  if (agent === undefined || !isAgent(agent)) return;
  if (llm_key === undefined || llm_key === '') fail('llm_key_required', '/llm_key');
  const problem = modelProblem(agent, model);
  if (problem !== undefined) fail(problem, '/model');
}

function checkEnvironment({ env_vars = {} }: CreateSandboxRequest): void {
  const [reserved] = reservedKeysIn(env_vars);
  if (reserved !== undefined) fail('reserved_env_var', `/env_vars/${reserved}`);
}

function checkApp({ app_json, wire_version }: CreateSandboxRequest): void {
  if (app_json !== undefined && wire_version === 1 && isMultiAgent(app_json)) {
    fail('multi_agent_needs_wire_version_2', '/wire_version');
  }
}

function checkWorkspace({ workspace_enabled, app_id, capset_id }: CreateSandboxRequest): void {
  if (workspace_enabled !== true) return;
  if (app_id === undefined) fail('workspace_fields_required', '/app_id');
  if (capset_id === undefined) fail('workspace_fields_required', '/capset_id');
}

async function checkPersistence(
  { persistence_url }: CreateSandboxRequest,
  egress: EgressPolicy,
): Promise<void> {
  if (persistence_url === undefined) return;
  const problem = await egress.problemOf(persistence_url);
  if (problem !== undefined) fail('persistence_url_refused', '/persistence_url', problem);
}

function checkOffered({ agent, workspace_enabled }: CreateSandboxRequest): void {
  if (agent !== undefined) fail('agent_not_available', '/agent');
  if (workspace_enabled === true) fail('workspaces_not_available', '/workspace_enabled');
}

function fail(code: ErrorCode, path: string, message = 'is not acceptable'): never {
  throw new ServiceError(code, undefined, { errors: [{ path, message }] });
}
