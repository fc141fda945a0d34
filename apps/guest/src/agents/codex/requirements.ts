import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { SERVER_NAME } from '../tool-server/index.ts';

/** The administrator's file: stronger than every other setting, and not writable for the agent. */
export const REQUIREMENTS_PATH = '/etc/codex/requirements.toml';

/** The feature behind each tool that codex can be without; web search has a setting of its own. */
const FEATURES = { shell: 'shell_tool', view_image: 'view_image', spawn_agent: 'multi_agent' };

/** Features that bring further tools, or run commands, when a config.toml enables them. */
const OTHER_FEATURES = [
  'code_mode',
  'code_mode_only',
  'current_time_reminder',
  'deferred_executor',
  'executor_capability_discovery_v2',
  'hooks',
  'multi_agent_v2',
  'multi_env_copy_file',
  'request_permissions_tool',
  'send_message_to_user_async',
  'token_budget',
];

/**
 * Writes the file that limits codex to these tools, and to the MCP server of the template's tools if there is one.
 * https://developers.openai.com/codex/enterprise/managed-configuration
 */
export async function writeRequirements(
  path: string,
  tools: readonly string[],
  server: string | undefined,
): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, requirementsFor(tools, server));
  await chmod(path, 0o644);
}

function requirementsFor(tools: readonly string[], server: string | undefined): string {
  const features = [
    ...Object.entries(FEATURES).map(([tool, feature]) => [feature, tools.includes(tool)]),
    ...OTHER_FEATURES.map((feature) => [feature, false]),
  ];
  const webSearch = tools.includes('web_search') ? [] : ['allowed_web_search_modes = ["disabled"]'];
  return [
    ...webSearch,
    'allow_managed_hooks_only = true',
    '[features]',
    ...features.map(([feature, enabled]) => `${feature} = ${enabled}`),
    // Allows none that is not named.
    '[mcp_servers]',
    ...(server === undefined
      ? []
      : [`[mcp_servers.${SERVER_NAME}.identity]`, `url = ${JSON.stringify(server)}`]),
    '',
  ].join('\n');
}
