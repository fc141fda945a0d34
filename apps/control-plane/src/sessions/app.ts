import {
  type Agent,
  type AppJson,
  agentTools,
  type CatalogueApp,
  type CreateSessionRequest,
  DEFAULT_SET,
  findCapabilitySet,
  type SessionCapabilitySet,
} from '@svc/contract';
import { checkAppTools, refuseTool } from '../agents/app-tools.ts';
import { rejectField } from '../reject-field.ts';

interface SandboxTemplate {
  readonly template: string;
}

const SETS = '/app/capability_sets';

/**
 * The app as its agent sees it: the chosen capability set alone, whose tools limit the agent. Undefined for an app that
 * neither the request nor the catalogue describes; its agent has every capability. The default set of an app of the
 * catalogue is the whole of the app's own agent, so any other kind of agent has every capability too.
 * @throws ServiceError `capability_set_unknown`, `tool_not_available`
 */
export function sessionApp(
  { agent, app, template }: Pick<CreateSessionRequest, 'agent' | 'app'> & SandboxTemplate,
  catalogue: readonly CatalogueApp[],
): AppJson | undefined {
  const { id, set_id: setId = DEFAULT_SET, capability_sets: sets } = app;
  if (sets !== undefined) {
    const set = findCapabilitySet(sets, setId);
    if (set === undefined) rejectField('capability_set_unknown', '/app/set_id');
    return appOf(agent.kind, template, id, id, setId, set);
  }
  const entry = catalogue.find((candidate) => candidate.app_id === id);
  if (entry === undefined) return undefined;
  const set = entry.capability_sets.find((candidate) => candidate.set_id === setId);
  if (set === undefined) rejectField('capability_set_unknown', '/app/set_id');
  if (setId !== DEFAULT_SET) return appOf(agent.kind, template, entry.name, id, setId, set);
  if (entry.app_id !== agent.kind) return undefined;
  const whole = { ...set, tools: [...agentTools(agent.kind, template)] };
  return appOf(agent.kind, template, entry.name, id, setId, whole);
}

function appOf(
  kind: Agent,
  template: string,
  name: string,
  agent: string,
  setId: string,
  { tools = [], agents, name: setName = setId }: SessionCapabilitySet,
): AppJson {
  const members = agents?.map((member) => withTools(member, tools)) ?? [
    withTools({ name: agent }, tools),
  ];
  const app = { name, capability_sets: [{ name: setName, agents: members }] };
  checkAppTools(kind, template, app, SETS);
  return app;
}

type Member = NonNullable<SessionCapabilitySet['agents']>[number];

/** An agent of a set, limited to the tools of the set. @throws ServiceError `tool_not_available` */
function withTools(agent: Member, ofSet: readonly string[]): Member {
  if (ofSet.length === 0) return agent;
  const { tools = [] } = agent;
  if (tools.length === 0) return { ...agent, tools: [...ofSet] };
  const excess = tools.find((tool) => !ofSet.includes(tool));
  if (excess !== undefined)
    refuseTool(excess, `is no tool of the set of agent ${agent.name}`, SETS);
  return agent;
}
