/** Model vendors and the dialects of their APIs. */

export const LLM_VENDORS = ['anthropic', 'openai', 'google', 'deepseek'] as const;
export type LlmVendor = (typeof LLM_VENDORS)[number];

/**
 * The API dialect of a request to the LLM gateway, which begins the first segment of the request path. For a customer's
 * own endpoint, a dot and a digest of its URL follow (`/openai.1f0e2d3c/responses`). The rest of the path is the vendor's own: `/anthropic/v1/messages`, `/openai/chat/completions`, `/openai/responses`,
 * `/google/models/{model}:streamGenerateContent`, `/deepseek/chat/completions`.
 */
export type LlmDialect = LlmVendor;

/** Base URL of each vendor's API, to which the rest of the agent's request path is appended. */
export const VENDOR_BASE_URLS: Readonly<Record<LlmVendor, string>> = {
  anthropic: 'https://api.anthropic.com',
  openai: 'https://api.openai.com/v1',
  google: 'https://generativelanguage.googleapis.com/v1beta',
  deepseek: 'https://api.deepseek.com',
};

/** With a customer's own base URL, google and deepseek use the OpenAI dialect. */
export function dialectOf(vendor: LlmVendor, hasBaseUrl: boolean): LlmDialect {
  return hasBaseUrl && vendor !== 'anthropic' ? 'openai' : vendor;
}

const MODEL_VENDORS: readonly (readonly [RegExp, LlmVendor])[] = [
  [/^claude/, 'anthropic'],
  [/^(?:gpt|chatgpt|o\d)/, 'openai'],
  [/^gemini/, 'google'],
  [/^deepseek/, 'deepseek'],
];

/** The vendor implied by a model's name, or undefined when the name implies none. */
export function vendorOfModel(model: string): LlmVendor | undefined {
  return MODEL_VENDORS.find(([pattern]) => pattern.test(model))?.[1];
}
