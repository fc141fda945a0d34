import { cpus } from 'node:os';
import { AGENT_TOOLS, PLACEHOLDER_LLM_KEY } from '@svc/contract';
import type { AgentContext } from '../agent.ts';
import {
  SERVER_NAME,
  TOKEN_VARIABLE,
  TOOL_DEADLINES,
  type ToolServer,
} from '../tool-server/index.ts';
import type { ToolMachine } from '../tools/template-tools.ts';
import type { CliEnvironment } from '../vendor-cli/environment.ts';

/** Options of a Claude Code process. https://code.claude.com/docs/en/cli-reference */
export interface ClaudeCodeOptions {
  readonly binary: string;
  /** Retries of a failed request by the CLI itself, with growing pauses. */
  readonly maxRetries: number;
  /** Default: this sandbox. */
  readonly machine?: ToolMachine;
}

export const CLAUDE_CODE_OPTIONS: ClaudeCodeOptions = {
  binary: '/usr/local/bin/claude',
  maxRetries: 4,
};

/**
 * Tools that start a turn later, when no task runs to receive it. Background commands and agents are disabled through
 * the environment.
 */
const DISABLED_TOOLS = ['ScheduleWakeup', 'Monitor'];
const SETTINGS = {
  // Otherwise the CLI asks its vendor about the host of each page before fetching it.
  skipWebFetchPreflight: true,
  // A resumed session needs its old transcript.
  cleanupPeriodDays: 3650,
};

/** Before the names of the template's tools in messages of the CLI. */
export const TOOL_PREFIX = `mcp__${SERVER_NAME}__`;

/** The server of the template's tools. They are always offered, never only after a search. */
function serverArgs({ url }: ToolServer): string[] {
  const server = {
    type: 'http',
    url,
    headers: { Authorization: `Bearer \${${TOKEN_VARIABLE}}` },
    timeout: TOOL_DEADLINES.call,
    alwaysLoad: true,
  };
  return [`--mcp-config=${JSON.stringify({ mcpServers: { [SERVER_NAME]: server } })}`];
}

/**
 * Limits a process to these tools. It reads no settings, skills, sub-agents or MCP servers from files, because the agent
 * may have written them itself: they run commands and bring further tools.
 */
function limitArgs(tools: readonly string[] | undefined): string[] {
  if (tools === undefined) return [];
  const builtIn = tools.filter((tool) => AGENT_TOOLS['claude-code'].includes(tool));
  return [`--tools=${builtIn.join(',')}`, '--setting-sources=', '--strict-mcp-config'];
}

/** The arguments of a process. `tools`: the only ones that it may use; undefined: all. `server`: those of the template. */
export function claudeCodeArgs(
  model: string,
  session: { id: string; exists: boolean },
  tools: readonly string[] | undefined,
  server: ToolServer | undefined,
): string[] {
  return [
    '--print',
    '--input-format=stream-json',
    '--output-format=stream-json',
    '--verbose',
    '--include-partial-messages',
    '--dangerously-skip-permissions',
    `--model=${model}`,
    `--settings=${JSON.stringify(SETTINGS)}`,
    `--disallowedTools=${DISABLED_TOOLS.join(',')}`,
    ...limitArgs(tools),
    ...(server === undefined ? [] : serverArgs(server)),
    session.exists ? `--resume=${session.id}` : `--session-id=${session.id}`,
  ];
}

/** Sends all requests to the gateway, and disables every other connection. */
export function claudeCodeEnvironment(
  { setup }: Pick<AgentContext, 'setup'>,
  configDirectory: string,
  { maxRetries }: ClaudeCodeOptions,
  server: ToolServer | undefined,
): CliEnvironment {
  const models = ['HAIKU', 'SONNET', 'OPUS', 'FABLE'].map((name) => [
    `ANTHROPIC_DEFAULT_${name}_MODEL`,
    setup.model,
  ]);
  return {
    reserved: ['ANTHROPIC_', 'CLAUDE_', 'CLAUDECODE'],
    set: {
      ANTHROPIC_BASE_URL: setup.gateway,
      ANTHROPIC_AUTH_TOKEN: PLACEHOLDER_LLM_KEY,
      // The session's model for small jobs and sub-agents too: the endpoint may offer no other, or the customer want none.
      ...Object.fromEntries(models),
      CLAUDE_CONFIG_DIR: configDirectory,
      CLAUDE_CODE_MAX_RETRIES: String(maxRetries),
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      // Otherwise a broken stream would be requested again as a whole, and paid for twice.
      CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK: '1',
      CLAUDE_CODE_DISABLE_BACKGROUND_TASKS: '1',
      CLAUDE_CODE_DISABLE_CRON: '1',
      CLAUDE_CODE_DISABLE_WORKFLOWS: '1',
      DISABLE_AUTOUPDATER: '1',
      DISABLE_TELEMETRY: '1',
      DISABLE_ERROR_REPORTING: '1',
      // Allows root to skip permissions: the micro-VM is the sandbox.
      IS_SANDBOX: '1',
      // Under emulation, JIT-compiled code is translated again, which costs twice what it gains.
      ...(server === undefined ? {} : { [TOKEN_VARIABLE]: server.token }),
      // For the connection to servers of tools.
      MCP_TIMEOUT: String(TOOL_DEADLINES.connect),
      ...(isEmulated() ? { BUN_JSC_useJIT: '0' } : {}),
    },
  };
}

/** Whether QEMU emulates the processor instruction by instruction, as in a sandbox without KVM. */
function isEmulated(): boolean {
  return cpus()[0]?.model.includes('QEMU TCG') === true;
}
