import type { ModelMessage } from 'ai';

/** Fewer characters a token than most text has: what is counted here is rather too much than too little. */
export const CHARS_PER_TOKEN = 3;

/** About how many tokens these messages are. */
export function estimateTokens(messages: readonly ModelMessage[]): number {
  return Math.ceil(JSON.stringify(messages).length / CHARS_PER_TOKEN);
}
