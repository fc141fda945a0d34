import {
  type CreateSandboxRequest,
  isAgent,
  isMultiAgent,
  isTemplate,
  reservedKeysIn,
} from '@svc/contract';
import type { EgressPolicy } from '@svc/egress';
import type { DefaultModels } from '../agents/models.ts';
import { checkOneShotAgent, checkOneShotBaseUrl } from '../agents/one-shot.ts';
import { refuse } from '../refuse.ts';

/** What requests are checked against. */
export interface CreateRules {
  readonly addresses: EgressPolicy;
  readonly models: DefaultModels;
}

/**
 * The rules of a request whose form is right, in their order: unknown names, then what the fields
 * say together, then what this installation does not offer yet.
 */
export async function checkCreateRules(
  request: CreateSandboxRequest,
  { addresses, models }: CreateRules,
): Promise<void> {
  checkNames(request);
  checkOneShotAgent(request, models);
  checkEnvironment(request);
  checkApp(request);
  checkWorkspace(request);
  await checkPersistence(request, addresses);
  await checkOneShotBaseUrl(request, addresses);
  checkOffered(request);
}

function checkNames({ template, agent }: CreateSandboxRequest): void {
  if (!isTemplate(template)) refuse('unknown_template', '/template');
  if (agent !== undefined && !isAgent(agent)) refuse('unknown_agent', '/agent');
}

function checkEnvironment({ env_vars = {} }: CreateSandboxRequest): void {
  const [reserved] = reservedKeysIn(env_vars);
  if (reserved !== undefined) refuse('reserved_env_var', `/env_vars/${reserved}`);
}

function checkApp({ app_json, wire_version }: CreateSandboxRequest): void {
  if (app_json !== undefined && wire_version === 1 && isMultiAgent(app_json)) {
    refuse('multi_agent_needs_wire_version_2', '/wire_version');
  }
}

function checkWorkspace({ workspace_enabled, app_id, capset_id }: CreateSandboxRequest): void {
  if (workspace_enabled !== true) return;
  if (app_id === undefined) refuse('workspace_fields_required', '/app_id');
  if (capset_id === undefined) refuse('workspace_fields_required', '/capset_id');
}

async function checkPersistence(
  { persistence_url }: CreateSandboxRequest,
  addresses: EgressPolicy,
): Promise<void> {
  if (persistence_url === undefined) return;
  const problem = await addresses.problemOf(persistence_url);
  if (problem !== undefined) refuse('persistence_url_refused', '/persistence_url', problem);
}

function checkOffered({ workspace_enabled }: CreateSandboxRequest): void {
  if (workspace_enabled === true) refuse('workspaces_not_available', '/workspace_enabled');
}
