import type { Agent, LlmVendor } from '@svc/contract';
import { CliError } from '../output/cli-error.ts';
import { vendorOf } from '../sessions/vendor.ts';

/** A real key, and whose it is. */
export interface VendorKey {
  readonly key: string;
  readonly vendor: LlmVendor;
}

const OF_VARIABLES: readonly (readonly [RegExp, LlmVendor])[] = [
  [/ANTHROPIC|CLAUDE/i, 'anthropic'],
  [/OPENAI|CODEX/i, 'openai'],
  [/GOOGLE|GEMINI/i, 'google'],
  [/DEEPSEEK/i, 'deepseek'],
];

/**
 * The key in an environment variable. Its vendor is the one that is named, else by the variable's name, else by
 * agent and model.
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
  const byName = OF_VARIABLES.find(([names]) => names.test(variable))?.[1];
  const byAgent = agent === 'deictic' ? byName : undefined;
  return { key: key.trim(), vendor: vendor ?? byAgent ?? vendorOf(agent, model) };
}
