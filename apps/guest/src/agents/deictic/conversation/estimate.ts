import type { ModelMessage } from 'ai';

/** Fewer characters per token than in most text, so that estimates err on the high side. */
export const CHARS_PER_TOKEN = 3;

/** What vendors count for a picture of 1280×800 pixels, at most. */
const IMAGE_TOKENS = 1_600;

/** Estimates the number of tokens of these messages. */
export function estimateTokens(messages: readonly ModelMessage[]): number {
  let images = 0;
  const text = JSON.stringify(messages, (_, value) => {
    if (!isImage(value)) return value;
    images += 1;
    return '';
  });
  return Math.ceil(text.length / CHARS_PER_TOKEN) + images * IMAGE_TOKENS;
}

function isImage(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'type' in value && value.type === 'file';
}
