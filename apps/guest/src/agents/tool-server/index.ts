/** The tools of the template, for the vendors' CLIs. */

import { sharedTools } from '@svc/contract';
import type { AgentContext } from '../agent.ts';
import { type ToolMachine, templateTools } from '../tools/template-tools.ts';
import { MAX_RESULT_CHARS } from '../tools/tool.ts';
import { ToolServer } from './tool-server.ts';

export type { ToolServer } from './tool-server.ts';

/** The name by which the CLIs know the server. */
export const SERVER_NAME = 'svc';
/** The variable with the server's token in the environment of a CLI. */
export const TOKEN_VARIABLE = 'SVC_TOOLS_TOKEN';
/** How long a CLI waits for a connection to the server, and for a call: longer than any tool takes, in milliseconds. */
export const TOOL_DEADLINES = { connect: 120_000, call: 900_000 };

/**
 * Serves the tools that the template of this sandbox has, as far as the app allows. Undefined if there are none. `machine`
 * defaults to this sandbox.
 */
export async function serveTools(
  context: AgentContext,
  machine: ToolMachine | undefined,
): Promise<ToolServer | undefined> {
  const allowed = sharedTools(context.setup.app);
  const { home, workingDirectory } = context;
  const ending = new AbortController();
  context.signal.addEventListener('abort', () => ending.abort(), { once: true });
  const processes = { home, workingDirectory, env: () => context.env(), signal: ending.signal };
  const tools = templateTools(processes, MAX_RESULT_CHARS, machine).filter(
    ({ name }) => allowed === undefined || allowed.includes(name),
  );
  return tools.length === 0 ? undefined : await ToolServer.start(tools, ending);
}
