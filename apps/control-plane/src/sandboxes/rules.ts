import {
  type CreateSandboxRequest,
  isAgent,
  isMultiAgent,
  isTemplate,
  LIMITS,
  reservedKeysIn,
} from '@svc/contract';
import type { EgressPolicy } from '@svc/egress';
import { checkAppTools } from '../agents/app-tools.ts';
import type { DefaultModels } from '../agents/default-models.ts';
import { checkOneShotAgent, checkOneShotBaseUrl } from '../agents/one-shot.ts';
import { rejectField } from '../reject-field.ts';

/** Policies that requests are checked against. */
export interface CreateRules {
  readonly addresses: EgressPolicy;
  readonly models: DefaultModels;
}

/**
 * Checks the rules of a well-formed request in this order: unknown names, then conflicts between fields.
 */
export async function checkCreateRules(
  request: CreateSandboxRequest,
  { addresses, models }: CreateRules,
): Promise<void> {
  checkNames(request);
  checkMetadata(request);
  checkOneShotAgent(request, models);
  checkEnvironment(request);
  checkApp(request);
  checkWorkspace(request);
  await checkPersistence(request, addresses);
  await checkOneShotBaseUrl(request, addresses);
}

function checkNames({ template, agent }: CreateSandboxRequest): void {
  if (!isTemplate(template)) rejectField('unknown_template', '/template');
  if (agent !== undefined && !isAgent(agent)) rejectField('unknown_agent', '/agent');
}

function checkMetadata({ metadata }: CreateSandboxRequest): void {
  if (metadata === undefined) return;
  if (Buffer.byteLength(JSON.stringify(metadata)) > LIMITS.metadataBytes) {
    rejectField('metadata_too_large', '/metadata');
  }
}

function checkEnvironment({ env_vars = {} }: CreateSandboxRequest): void {
  const [reserved] = reservedKeysIn(env_vars);
  if (reserved !== undefined) rejectField('reserved_env_var', `/env_vars/${reserved}`);
}

function checkApp({ agent, app_json, template, wire_version }: CreateSandboxRequest): void {
  if (app_json !== undefined && wire_version === 1 && isMultiAgent(app_json)) {
    rejectField('multi_agent_needs_wire_version_2', '/wire_version');
  }
  if (agent !== undefined && isAgent(agent)) checkAppTools(agent, template, app_json, '/app_json');
}

function checkWorkspace({ workspace_enabled, app_id, capset_id }: CreateSandboxRequest): void {
  if (workspace_enabled !== true) return;
  if (app_id === undefined) rejectField('workspace_fields_required', '/app_id');
  if (capset_id === undefined) rejectField('workspace_fields_required', '/capset_id');
}

async function checkPersistence(
  { persistence_url }: CreateSandboxRequest,
  addresses: EgressPolicy,
): Promise<void> {
  if (persistence_url === undefined) return;
  const problem = await addresses.problemOf(persistence_url);
  if (problem !== undefined) rejectField('persistence_url_refused', '/persistence_url', problem);
}
