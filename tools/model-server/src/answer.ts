import type { Answer, Conversation } from './dialects/index.ts';
import type { Reply } from './script.ts';

/** Turns a reply into an answer: text chunks, tool calls with unique ids, and token usage. */
export function answerOf(
  reply: Reply,
  { model }: Conversation,
  id: string,
  requestBytes: number,
): Answer {
  const { text, tool_calls = [], usage } = reply;
  const chunks = typeof text === 'string' ? [text] : (text ?? []);
  const calls = tool_calls.map((call, index) => ({
    id: `${id}_${index}`,
    name: call.name,
    arguments: call.arguments ?? {},
  }));
  const written =
    chunks.join('').length + JSON.stringify(calls.map((call) => call.arguments)).length;
  return {
    id,
    model,
    chunks,
    calls,
    usage: {
      input: usage?.input_tokens ?? tokensIn(requestBytes),
      output: usage?.output_tokens ?? tokensIn(written),
      cached: usage?.cached_input_tokens ?? 0,
    },
  };
}

/** Estimates the number of tokens in a number of characters. */
export function tokensIn(characters: number): number {
  return Math.max(1, Math.ceil(characters / 4));
}
