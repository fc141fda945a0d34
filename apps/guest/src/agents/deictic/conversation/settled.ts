import type { ModelMessage, ToolCallPart, ToolModelMessage } from 'ai';

/** Why a turn stopped before its end, as the model reads it later. */
export interface Stop {
  /** The result of every tool that has none. */
  readonly result: string;
  /** What the assistant says at the end, when it did not come to say anything. */
  readonly words: string;
}

/**
 * The same conversation in a form that every vendor takes: each tool call has its result right behind it, there is
 * no result without a call, and the last word is the assistant's.
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

/** The result of a call, as the model gets it. */
export function toolResult(
  call: { readonly toolCallId: string; readonly toolName: string },
  text: string,
  isError: boolean,
): ToolModelMessage['content'][number] {
  const { toolCallId, toolName } = call;
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
