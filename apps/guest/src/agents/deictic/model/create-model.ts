import { createAnthropic } from '@ai-sdk/anthropic';
import { createDeepSeek } from '@ai-sdk/deepseek';
import { createGoogle } from '@ai-sdk/google';
import { createOpenAI } from '@ai-sdk/openai';
import { type AgentSetup, type LlmDialect, PLACEHOLDER_LLM_KEY } from '@svc/contract';
import type { LanguageModel } from 'ai';

/** A callable model of the SDK, as opposed to a model's name. */
export type CallableModel = Exclude<LanguageModel, string>;

// The SDK would print warnings to a console that no one reads.
globalThis.AI_SDK_LOG_WARNINGS = false;

/**
 * Creates the model of a setup. Requests go to the gateway, which replaces the placeholder key by the real one. The
 * OpenAI dialect is Chat Completions, which every compatible server supports.
 */
export function createModel(
  setup: Pick<AgentSetup, 'dialect' | 'gateway' | 'model'>,
  transport: typeof fetch,
): CallableModel {
  const { dialect, model } = setup;
  const baseURL = setup.gateway.replace(/\/+$/, '');
  const settings = { apiKey: PLACEHOLDER_LLM_KEY, fetch: transport };
  switch (dialect) {
    case 'anthropic':
      // Only this provider expects the version in its base URL.
      return createAnthropic({ ...settings, baseURL: `${baseURL}/v1` })(model);
    case 'openai':
      return createOpenAI({ ...settings, baseURL }).chat(model);
    case 'google':
      return createGoogle({ ...settings, baseURL })(model);
    case 'deepseek':
      return createDeepSeek({ ...settings, baseURL })(model);
  }
}

const MAX_OUTPUT_TOKENS: Readonly<Record<LlmDialect, number | undefined>> = {
  anthropic: 32_000,
  openai: undefined,
  google: undefined,
  // Twice the endpoint's default.
  deepseek: 8_192,
};

/** Output limit to request, in tokens; undefined: the endpoint's default. */
export function maxOutputTokens(dialect: LlmDialect): number | undefined {
  return MAX_OUTPUT_TOKENS[dialect];
}
