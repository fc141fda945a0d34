/** The vendors' formats of token counts. */

import type { LlmUsage } from '../account.ts';

/** The counts reported so far, under the vendor's own names. */
export type Counts = Readonly<Record<string, number>>;

/** The numbers in a usage object, including nested ones such as `prompt_tokens_details.cached_tokens`. */
export function countsIn(value: unknown): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const [name, count] of entriesOf(value)) {
    if (isCount(count)) counts[name] = count;
    else {
      for (const [inner, one] of entriesOf(count)) {
        if (isCount(one)) counts[`${name}.${inner}`] = one;
      }
    }
  }
  return counts;
}

/** Converts the counts to a common format; undefined when there are none. */
export function usageOf(counts: Counts, model: string | undefined): LlmUsage | undefined {
  const found = anthropicTokens(counts) ?? openaiTokens(counts) ?? googleTokens(counts);
  if (found === undefined) return undefined;
  const { input, output, cached } = found;
  return {
    input_tokens: input,
    output_tokens: output,
    ...(cached === undefined ? {} : { cached_input_tokens: cached }),
    ...(model === undefined ? {} : { model }),
  };
}

interface Tokens {
  readonly input: number;
  readonly output: number;
  readonly cached: number | undefined;
}

/** Anthropic counts tokens read from and written to the cache separately from the rest of the input. */
function anthropicTokens(counts: Counts): Tokens | undefined {
  const { input_tokens, cache_read_input_tokens: read, output_tokens = 0 } = counts;
  const { cache_creation_input_tokens: written } = counts;
  // Some proxies add these to OpenAI's counts, which already include them.
  const isOpenai = counts.prompt_tokens !== undefined;
  if (isOpenai || (read === undefined && written === undefined)) return undefined;
  return {
    input: (input_tokens ?? 0) + (read ?? 0) + (written ?? 0),
    output: output_tokens,
    cached: read,
  };
}

/** Responses, Chat Completions and DeepSeek's variant; Anthropic's counts without a cache look like the first. */
function openaiTokens(counts: Counts): Tokens | undefined {
  const input = counts.input_tokens ?? counts.prompt_tokens;
  const output = counts.output_tokens ?? counts.completion_tokens;
  if (input === undefined && output === undefined) return undefined;
  const cached =
    counts['input_tokens_details.cached_tokens'] ??
    counts['prompt_tokens_details.cached_tokens'] ??
    counts.prompt_cache_hit_tokens;
  return { input: input ?? 0, output: output ?? 0, cached };
}

function googleTokens(counts: Counts): Tokens | undefined {
  const { promptTokenCount, candidatesTokenCount, thoughtsTokenCount = 0 } = counts;
  const { toolUsePromptTokenCount = 0, cachedContentTokenCount: cached } = counts;
  if (promptTokenCount === undefined && candidatesTokenCount === undefined) return undefined;
  return {
    input: (promptTokenCount ?? 0) + toolUsePromptTokenCount,
    output: (candidatesTokenCount ?? 0) + thoughtsTokenCount,
    cached,
  };
}

function entriesOf(value: unknown): [string, unknown][] {
  return typeof value === 'object' && value !== null ? Object.entries(value) : [];
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}
