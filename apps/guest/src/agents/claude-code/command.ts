import { PLACEHOLDER_LLM_KEY } from '@svc/contract';
import type { AgentContext } from '../agent.ts';
import { isEmulated } from '../vendor-cli/emulation.ts';
import type { CliEnvironment } from '../vendor-cli/environment.ts';

/** What is said to Claude Code when it starts. https://code.claude.com/docs/en/cli-reference */
export interface ClaudeCodeOptions {
  readonly binary: string;
  /** Of a failed request, by the CLI itself, with growing pauses. */
  readonly maxRetries: number;
}

export const CLAUDE_CODE_OPTIONS: ClaudeCodeOptions = {
  binary: '/usr/local/bin/claude',
  maxRetries: 4,
};

/**
 * Tools that start a turn of their own later: between the tasks of a session nobody listens. Commands and agents in
 * the background are turned off by the environment.
 */
const NO_TOOLS = ['ScheduleWakeup', 'Monitor'];
const SETTINGS = {
  // Else the CLI asks its vendor about the host of each page before it fetches one.
  skipWebFetchPreflight: true,
  // Old transcripts are the conversation of a session that is resumed.
  cleanupPeriodDays: 3650,
};

export function claudeCodeArgs(model: string, session: { id: string; exists: boolean }): string[] {
  return [
    '--print',
    '--input-format=stream-json',
    '--output-format=stream-json',
    '--verbose',
    '--include-partial-messages',
    '--dangerously-skip-permissions',
    `--model=${model}`,
    `--settings=${JSON.stringify(SETTINGS)}`,
    `--disallowedTools=${NO_TOOLS.join(',')}`,
    session.exists ? `--resume=${session.id}` : `--session-id=${session.id}`,
  ];
}

/** Everything goes through the gateway, and nothing anywhere else. */
export function claudeCodeEnvironment(
  { setup }: Pick<AgentContext, 'setup'>,
  configDirectory: string,
  { maxRetries }: ClaudeCodeOptions,
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
      // For its small jobs and its sub-agents too: another model may not be there, or not be wanted.
      ...Object.fromEntries(models),
      CLAUDE_CONFIG_DIR: configDirectory,
      CLAUDE_CODE_MAX_RETRIES: String(maxRetries),
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      // A stream that broke off would be asked for once more as a whole, and paid for twice.
      CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK: '1',
      CLAUDE_CODE_DISABLE_BACKGROUND_TASKS: '1',
      CLAUDE_CODE_DISABLE_CRON: '1',
      CLAUDE_CODE_DISABLE_WORKFLOWS: '1',
      DISABLE_AUTOUPDATER: '1',
      DISABLE_TELEMETRY: '1',
      DISABLE_ERROR_REPORTING: '1',
      // Allows root to skip permissions, which the micro-VM stands in for.
      IS_SANDBOX: '1',
      // Code that the CLI compiles while it runs is translated once more by an emulator: that costs twice what it gains.
      ...(isEmulated() ? { BUN_JSC_useJIT: '0' } : {}),
    },
  };
}
