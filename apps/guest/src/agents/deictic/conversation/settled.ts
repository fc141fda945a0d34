import type { ModelMessage, ToolCallPart, ToolModelMessage } from 'ai';
import type { ToolImage } from '../../tools/tool.ts';
import { imagePart } from './images.ts';

/** The reason why a turn stopped early, as the model reads it later. */
export interface Stop {
  /** The result for tool calls without one. */
  readonly result: string;
  /** The assistant's final message, if it has not sent one. */
  readonly words: string;
}

/**
 * The conversation in a form that every vendor accepts: each tool call is followed by its result, no result lacks a
 * call, and the last message is the assistant's.
 */
export function settled(messages: readonly ModelMessage[], stop: Stop): ModelMessage[] {
  const out: ModelMessage[] = [];
  for (const [index, message] of messages.entries()) {
    if (message.role === 'tool') continue;
    out.push(message);
    const calls = toolCallsOf(message);
    if (calls.length === 0) continue;
    const next = messages[index + 1];
    out.push(resultsFor(calls, next?.role === 'tool' ? next : undefined, stop.result));
  }
  const last = out.at(-1);
  if (last !== undefined && last.role !== 'assistant') {
    out.push({ role: 'assistant', content: stop.words });
  }
  return out;
}

/** The tool calls in a message. */
export function toolCallsOf(message: ModelMessage): ToolCallPart[] {
  if (message.role !== 'assistant' || typeof message.content === 'string') return [];
  return message.content.filter((part) => part.type === 'tool-call');
}

/** The result of a call, in the SDK's format. */
export function toolResult(
  call: { readonly toolCallId: string; readonly toolName: string },
  text: string,
  isError: boolean,
  image?: ToolImage,
): ToolModelMessage['content'][number] {
  const { toolCallId, toolName } = call;
  if (image !== undefined) {
    const value = [{ type: 'text' as const, text }, imagePart(image)];
    return { type: 'tool-result', toolCallId, toolName, output: { type: 'content', value } };
  }
  const type = isError ? 'error-text' : 'text';
  return { type: 'tool-result', toolCallId, toolName, output: { type, value: text } };
}

function resultsFor(
  calls: readonly ToolCallPart[],
  given: ToolModelMessage | undefined,
  missing: string,
): ToolModelMessage {
  const content = calls.map(
    (call) =>
      given?.content.find(
        (part) => part.type === 'tool-result' && part.toolCallId === call.toolCallId,
      ) ?? toolResult(call, missing, true),
  );
  return { role: 'tool', content };
}
