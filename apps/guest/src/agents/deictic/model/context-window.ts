/** Context windows in tokens, by prefix of the model's name. Longer prefixes come first. */
const WINDOWS: readonly (readonly [prefix: string, tokens: number])[] = [
  ['claude', 200_000],
  ['gpt-4.1', 1_047_576],
  ['gpt-4o', 128_000],
  ['gpt-4-turbo', 128_000],
  ['gpt-4-32k', 32_768],
  ['gpt-4', 8_192],
  ['gpt-3.5', 16_385],
  ['gpt-5', 272_000],
  ['gpt-oss', 128_000],
  ['chatgpt', 128_000],
  ['o1-mini', 128_000],
  ['o1-preview', 128_000],
  ['o1', 200_000],
  ['o3', 200_000],
  ['o4', 200_000],
  ['gemini', 1_048_576],
  ['deepseek', 128_000],
  ['llama-3', 128_000],
  ['llama3', 128_000],
  ['llama-4', 128_000],
  ['kimi', 128_000],
  ['glm', 128_000],
  ['grok', 128_000],
];

/** The window assumed for an unknown model; small enough for most. */
const UNKNOWN_MODEL = 32_768;

/** The context window of a model, in tokens. The name may have a path in front (`openai/gpt-4o`). */
export function contextWindow(model: string): number {
  const name = model.slice(model.lastIndexOf('/') + 1).toLowerCase();
  return WINDOWS.find(([prefix]) => name.startsWith(prefix))?.[1] ?? UNKNOWN_MODEL;
}
