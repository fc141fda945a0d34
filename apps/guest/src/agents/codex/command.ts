import { PLACEHOLDER_LLM_KEY } from '@svc/contract';
import type { AgentContext } from '../agent.ts';
import {
  SERVER_NAME,
  TOKEN_VARIABLE,
  TOOL_DEADLINES,
  type ToolServer,
} from '../tool-server/index.ts';
import type { ToolMachine } from '../tools/template-tools.ts';
import type { CliEnvironment } from '../vendor-cli/environment.ts';
import { REQUIREMENTS_PATH } from './requirements.ts';

/** Options of a codex process. https://developers.openai.com/codex/config-reference */
export interface CodexOptions {
  readonly binary: string;
  /** The file that limits its tools. */
  readonly requirements: string;
  /** Retries of a failed request, and of a broken answer: each, with growing pauses. */
  readonly maxRetries: number;
  /** Longest silence within an answer of the model, in milliseconds. */
  readonly streamIdleMs: number;
  /** Default: this sandbox. */
  readonly machine?: ToolMachine;
}

export const CODEX_OPTIONS: CodexOptions = {
  binary: '/usr/local/bin/codex',
  requirements: REQUIREMENTS_PATH,
  maxRetries: 2,
  streamIdleMs: 300_000,
};

const PROVIDER = 'svc';
const KEY_VARIABLE = 'SVC_LLM_PLACEHOLDER';

/**
 * Features that make other connections (plugins come from GitHub), start turns of their own (goals), or retry forever.
 */
const DISABLED_FEATURES = [
  'plugins',
  'remote_plugin',
  'plugin_sharing',
  'apps',
  'tool_suggest',
  'api_key_model_discovery',
  'daemon_auto_start',
  'in_app_updates',
  'goals',
  'unbounded_connection_retries',
];

/**
 * Settings as command-line arguments, which take precedence over a config.toml in the agent's home. `tools`: the only
 * ones that it may use, which `requirements.ts` enforces; undefined: all. `server`: those of the template.
 */
export function codexArgs(
  { setup }: Pick<AgentContext, 'setup'>,
  { maxRetries, streamIdleMs }: CodexOptions,
  tools: readonly string[] | undefined,
  server: ToolServer | undefined,
): string[] {
  const provider = {
    name: PROVIDER,
    base_url: setup.gateway,
    env_key: KEY_VARIABLE,
    wire_api: 'responses',
    request_max_retries: maxRetries,
    stream_max_retries: maxRetries,
    stream_idle_timeout_ms: streamIdleMs,
  };
  const settings = {
    model: setup.model,
    model_provider: PROVIDER,
    ...prefixed(`model_providers.${PROVIDER}`, provider),
    // The micro-VM is the sandbox.
    approval_policy: 'never',
    sandbox_mode: 'danger-full-access',
    check_for_update_on_startup: false,
    'analytics.enabled': false,
    'feedback.enabled': false,
    // Commands get all values of bundles; by default codex withholds those with names like KEY.
    'shell_environment_policy.ignore_default_excludes': true,
    ...(tools === undefined ? {} : limits(tools)),
    ...(server === undefined ? {} : serverSettings(server)),
    ...prefixed('features', Object.fromEntries(DISABLED_FEATURES.map((name) => [name, false]))),
  };
  // JSON strings, numbers and booleans are valid TOML.
  const options = Object.entries(settings).map(([key, value]) => `${key}=${JSON.stringify(value)}`);
  return ['app-server', ...options.flatMap((option) => ['-c', option])];
}

/** A config.toml could name a program to run after each turn. The search is named because codex logs a corrected one. */
function limits(tools: readonly string[]) {
  return { notify: [], ...(tools.includes('web_search') ? {} : { web_search: 'disabled' }) };
}

/** The server of the template's tools. They are always offered, never only after a search. */
function serverSettings({ url }: ToolServer) {
  const server = {
    url,
    bearer_token_env_var: TOKEN_VARIABLE,
    enabled: true,
    // Otherwise a turn would begin without the tools while codex still connects.
    required: true,
    startup_timeout_sec: TOOL_DEADLINES.connect / 1000,
    tool_timeout_sec: TOOL_DEADLINES.call / 1000,
  };
  return {
    ...prefixed(`mcp_servers.${SERVER_NAME}`, server),
    'features.code_mode.direct_only_tool_namespaces': [`mcp__${SERVER_NAME}`],
  };
}

/** `databases` is a directory for indexes that codex can rebuild from its transcripts. */
export function codexEnvironment(
  home: string,
  databases: string,
  server: ToolServer | undefined,
): CliEnvironment {
  return {
    reserved: ['CODEX_'],
    set: {
      CODEX_HOME: home,
      CODEX_SQLITE_HOME: databases,
      [KEY_VARIABLE]: PLACEHOLDER_LLM_KEY,
      ...(server === undefined ? {} : { [TOKEN_VARIABLE]: server.token }),
      RUST_LOG: 'error',
    },
  };
}

function prefixed(prefix: string, values: Readonly<Record<string, unknown>>) {
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => [`${prefix}.${name}`, value]),
  );
}
