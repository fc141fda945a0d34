import { createAnthropic } from '@ai-sdk/anthropic';
import { createDeepSeek } from '@ai-sdk/deepseek';
import { createGoogle } from '@ai-sdk/google';
import { createOpenAI } from '@ai-sdk/openai';
import { type AgentSetup, type LlmDialect, PLACEHOLDER_LLM_KEY } from '@svc/contract';
import type { LanguageModel } from 'ai';

/** A model of the SDK's that can be called: never just its name. */
export type CallableModel = Exclude<LanguageModel, string>;

// The SDK would print its warnings where nobody looks for them.
globalThis.AI_SDK_LOG_WARNINGS = false;

/**
 * The model of a setup, behind the gateway that puts the real key in the place of ours. OpenAI is spoken as Chat
 * Completions, which every compatible server has.
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
      // This provider alone wants the version in its base URL.
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
  // Its own default is half of that.
  deepseek: 8_192,
};

/** Longest answer to ask for; undefined leaves it to the endpoint. */
export function maxOutputTokens(dialect: LlmDialect): number | undefined {
  return MAX_OUTPUT_TOKENS[dialect];
}
