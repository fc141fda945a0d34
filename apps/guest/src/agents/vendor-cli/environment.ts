import type { AgentContext } from '../agent.ts';

/** The settings of a vendor's CLI in its environment. */
export interface CliEnvironment {
  /** Prefixes of the CLI's own settings, which the service controls: a bundle's values are ignored. */
  readonly reserved: readonly string[];
  readonly set: Readonly<Record<string, string>>;
}

/** The address of the server of the template's tools. */
const LOOPBACK = '127.0.0.1';

/** Marks every process of one agent, even those that leave its process group. */
export const MARK = 'SVC_AGENT_MARK';

/**
 * The environment of a CLI and of the commands that it runs: the agent's, without values that would redirect the CLI
 * away from the gateway or the server of tools.
 */
export function cliEnvironment(
  context: Pick<AgentContext, 'env' | 'setup' | 'home'>,
  { reserved, set }: CliEnvironment,
  mark: string,
): Record<string, string> {
  const env = Object.fromEntries(
    Object.entries(context.env()).filter(
      ([name]) => !reserved.some((prefix) => name.startsWith(prefix)),
    ),
  );
  const direct = [env.NO_PROXY ?? env.no_proxy, new URL(context.setup.gateway).hostname, LOOPBACK]
    .filter(Boolean)
    .join(',');
  return { ...env, NO_PROXY: direct, no_proxy: direct, HOME: context.home, ...set, [MARK]: mark };
}
