/** Vendors of models, and the dialects in which their APIs are spoken. */

export const LLM_VENDORS = ['anthropic', 'openai', 'google', 'deepseek'] as const;
export type LlmVendor = (typeof LLM_VENDORS)[number];

/**
 * How an agent speaks to the LLM gateway, as the first segment of the gateway's path. Below it follows what the
 * vendor's own base URL has: `/anthropic/v1/messages`, `/openai/chat/completions`, `/openai/responses`,
 * `/google/models/{model}:streamGenerateContent`, `/deepseek/chat/completions`.
 */
export type LlmDialect = LlmVendor;

/** Base URL of each vendor's own API, joined with what an agent asks of its dialect. */
export const VENDOR_BASE_URLS: Readonly<Record<LlmVendor, string>> = {
  anthropic: 'https://api.anthropic.com',
  openai: 'https://api.openai.com/v1',
  google: 'https://generativelanguage.googleapis.com/v1beta',
  deepseek: 'https://api.deepseek.com',
};

/** google and deepseek at a base URL of the customer's speak the OpenAI dialect. */
export function dialectOf(vendor: LlmVendor, hasBaseUrl: boolean): LlmDialect {
  return hasBaseUrl && vendor !== 'anthropic' ? 'openai' : vendor;
}

const MODEL_VENDORS: readonly (readonly [RegExp, LlmVendor])[] = [
  [/^claude/, 'anthropic'],
  [/^(?:gpt|chatgpt|o\d)/, 'openai'],
  [/^gemini/, 'google'],
  [/^deepseek/, 'deepseek'],
];

/** The vendor that a model's name tells, or undefined when it tells none. */
export function vendorOfModel(model: string): LlmVendor | undefined {
  return MODEL_VENDORS.find(([pattern]) => pattern.test(model))?.[1];
}
