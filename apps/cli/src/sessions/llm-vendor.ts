import { AGENT_VENDORS, type Agent, type LlmVendor, vendorOfModel } from '@svc/contract';
import { CliError } from '../output/errors.ts';

/** A model vendor's API key. */
export interface VendorKey {
  readonly key: string;
  readonly vendor: LlmVendor;
}

const KEY_VARIABLES: readonly (readonly [RegExp, LlmVendor])[] = [
  [/ANTHROPIC|CLAUDE/i, 'anthropic'],
  [/OPENAI|CODEX/i, 'openai'],
  [/GOOGLE|GEMINI/i, 'google'],
  [/DEEPSEEK/i, 'deepseek'],
];

/** The vendor that an agent requires, or else the one whose model names look like `model`; by default Anthropic. */
export function vendorOf(agent: Agent, model: string | undefined): LlmVendor {
  return AGENT_VENDORS[agent] ?? vendorOfModel(model ?? '') ?? 'anthropic';
}

/**
 * Reads a vendor's key from an environment variable. If no vendor is given, it is derived from the name of the
 * variable, or else from agent and model.
 * @throws CliError `no_key`
 */
export function vendorKey(
  variable: string,
  { agent, vendor, model }: { agent: Agent; vendor?: LlmVendor; model?: string },
  environment: NodeJS.ProcessEnv = process.env,
): VendorKey {
  const key = environment[variable];
  if (key === undefined || key.trim() === '') {
    throw new CliError('no_key', `${variable} is not set`, {
      next: `set it to a key of a model vendor: ${variable}=… svc demo --key-env ${variable}`,
    });
  }
  const byVariable = KEY_VARIABLES.find(([names]) => names.test(variable))?.[1];
  const byAgent = AGENT_VENDORS[agent] === undefined ? byVariable : undefined;
  return { key: key.trim(), vendor: vendor ?? byAgent ?? vendorOf(agent, model) };
}
