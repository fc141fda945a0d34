import { type Agent, type AppJson, ServiceError, toolProblem } from '@svc/contract';

/**
 * Checks that the tools of an app limit this kind of agent in this template. `path` is a JSON pointer to the app's sets.
 * @throws ServiceError `tool_not_available`, which names the tool
 */
export function checkAppTools(
  agent: Agent,
  template: string,
  app: AppJson | undefined,
  path: string,
): void {
  const problem = app === undefined ? undefined : toolProblem(agent, template, app);
  if (problem !== undefined) refuseTool(problem.tool, problem.reason, path);
}

/** @throws ServiceError `tool_not_available` always */
export function refuseTool(tool: string, reason: string, path: string): never {
  const message = `${JSON.stringify(tool)} ${reason}.`;
  throw new ServiceError('tool_not_available', `The tool ${message}`, {
    errors: [{ path, message }],
  });
}
