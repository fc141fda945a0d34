import type { ModelMessage } from 'ai';

/** Fewer characters per token than in most text, so that estimates err on the high side. */
export const CHARS_PER_TOKEN = 3;

/** Estimates the number of tokens of these messages. */
export function estimateTokens(messages: readonly ModelMessage[]): number {
  return Math.ceil(JSON.stringify(messages).length / CHARS_PER_TOKEN);
}
