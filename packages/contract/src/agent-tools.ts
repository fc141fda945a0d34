/** The tools of the agents, by which an app can limit them. */

import type { Agent } from './agents.ts';
import type { AppJson } from './sandboxes/app-json.ts';
import type { Template } from './templates.ts';

/**
 * The tools that an app can name for each agent in every template, in the agent's own words. Some stand for several: codex's `shell` for
 * its `exec_command` and `write_stdin`, its `spawn_agent` for everything about sub-agents. The tests of the agents
 * compare these lists with what the programs of the image offer.
 */
export const AGENT_TOOLS: Readonly<Record<Agent, readonly string[]>> = {
  deictic: ['shell', 'read_file', 'write_file', 'edit_file', 'search', 'list_files', 'fetch'],
  'claude-code': [
    'Agent',
    'Bash',
    'Edit',
    'EnterWorktree',
    'ExitWorktree',
    'Glob',
    'Grep',
    'ListAgents',
    'NotebookEdit',
    'Read',
    'ReportFindings',
    'SendMessage',
    'Skill',
    'TaskCreate',
    'TaskGet',
    'TaskList',
    'TaskStop',
    'TaskUpdate',
    'ToolSearch',
    'WebFetch',
    'WebSearch',
    'Write',
  ],
  codex: ['shell', 'apply_patch', 'view_image', 'web_search', 'spawn_agent'],
};

/** The tools of a browser, which agents have in templates with a browser. */
export const BROWSER_TOOLS = [
  'browser_navigate',
  'browser_snapshot',
  'browser_text',
  'browser_click',
  'browser_type',
  'browser_take_screenshot',
  'browser_download',
] as const;

/** The tools of a desktop, which agents have in templates with a desktop. */
export const DESKTOP_TOOLS = [
  'desktop_screenshot',
  'desktop_elements',
  'desktop_click_element',
  'desktop_move',
  'desktop_click',
  'desktop_double_click',
  'desktop_drag',
  'desktop_scroll',
  'desktop_type',
  'desktop_key',
  'desktop_wait',
] as const;

/** The tools that agents of every kind have in some templates only, under the same names. */
const TEMPLATE_TOOLS: ReadonlyMap<string, readonly string[]> = new Map<Template, readonly string[]>(
  [
    ['browser', BROWSER_TOOLS],
    ['cua', DESKTOP_TOOLS],
  ],
);

/** The tools of an agent in sandboxes of a template, see {@link AGENT_TOOLS}. */
export function agentTools(agent: Agent, template: string): readonly string[] {
  return [...AGENT_TOOLS[agent], ...(TEMPLATE_TOOLS.get(template) ?? [])];
}

/** The tools that cannot be taken from an agent: codex has no setting for `apply_patch`. */
const PERMANENT_TOOLS: Readonly<Record<Agent, readonly string[]>> = {
  deictic: [],
  'claude-code': [],
  codex: ['apply_patch'],
};

/** Agents that can play every agent of an app, each with tools of its own. */
const TEAM_AGENTS: readonly Agent[] = ['deictic'];

/** A tool of an app that an agent does not have, or that cannot be limited as the app says. */
export interface ToolProblem {
  /** The name of the tool, as given. */
  readonly tool: string;
  /** A clause about the tool. */
  readonly reason: string;
}

/**
 * The first reason why the tools that the agents of an app name do not limit this kind of agent as they should;
 * undefined when they do. An agent of an app without a list, or with an empty one, has all tools.
 */
export function toolProblem(agent: Agent, template: string, app: AppJson): ToolProblem | undefined {
  const tools = agentTools(agent, template);
  const lists = toolLists(app);
  for (const list of lists) {
    const unknown = list?.find((tool) => !tools.includes(tool));
    if (unknown !== undefined) {
      return {
        tool: unknown,
        reason: `is no tool of ${agent} in the template ${template}, which has ${tools.join(', ')}`,
      };
    }
    const missing = PERMANENT_TOOLS[agent].find(
      (tool) => list !== undefined && !list.includes(tool),
    );
    if (missing !== undefined) {
      return { tool: missing, reason: `cannot be taken from ${agent}: add it to \`tools\`` };
    }
  }
  if (TEAM_AGENTS.includes(agent)) return undefined;
  const wholes = lists.map((list) => list ?? tools);
  const partial = tools.find(
    (tool) =>
      wholes.some((list) => list.includes(tool)) && !wholes.every((list) => list.includes(tool)),
  );
  if (partial === undefined) return undefined;
  const reason = `cannot be limited to some agents of the app: ${agent} works as one agent`;
  return { tool: partial, reason };
}

/**
 * The tools that an agent which works alone may use for an app; undefined: all. If the agents of the app name
 * different tools, only those that all of them name.
 */
export function sharedTools(app: AppJson | undefined): readonly string[] | undefined {
  if (app === undefined) return undefined;
  const lists = toolLists(app).filter((list) => list !== undefined);
  const [first, ...others] = lists;
  if (first === undefined) return undefined;
  return [...new Set(first)].filter((tool) => others.every((list) => list.includes(tool)));
}

/** The tools that each agent of an app names; undefined for one that names none. */
function toolLists(app: AppJson): (readonly string[] | undefined)[] {
  return app.capability_sets.flatMap(({ agents }) =>
    agents.map(({ tools = [] }) => (tools.length === 0 ? undefined : tools)),
  );
}
