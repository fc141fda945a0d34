import { at, type JsonObject, objectsAt, stringAt } from '../vendor-cli/json.ts';
import { textOfContent } from '../vendor-cli/tool-content.ts';
import type { TurnFrames } from '../vendor-cli/turn-frames.ts';
import { TOOL_PREFIX } from './command.ts';

/**
 * Converts a message of a Claude Code turn to frames. Skips messages of sub-agents, which belong to the tool call that
 * started them, and of failed requests, which the turn's result reports.
 */
export function framesOfMessage(message: JsonObject, frames: TurnFrames): void {
  if (typeof message.parent_tool_use_id === 'string') return;
  if (message.type === 'stream_event') {
    if (stringAt(message, 'event', 'delta', 'type') === 'text_delta') {
      frames.textDelta(stringAt(message, 'event', 'delta', 'text') ?? '');
    }
  } else if (message.type === 'assistant') {
    if (message.is_api_error_message !== true) framesOfAnswer(message, frames);
  } else if (message.type === 'user') {
    framesOfResults(message, frames);
  }
}

function framesOfAnswer(message: JsonObject, frames: TurnFrames): void {
  for (const block of objectsAt(message, 'message', 'content')) {
    if (block.type === 'text') frames.message(stringAt(block, 'text') ?? '');
    if (block.type === 'tool_use') {
      const name = stringAt(block, 'name') ?? '';
      const id = stringAt(block, 'id') ?? '';
      // In the words of an app, as for every agent.
      frames.toolCall(id, name.replace(TOOL_PREFIX, ''), block.input);
    }
  }
}

function framesOfResults(message: JsonObject, frames: TurnFrames): void {
  for (const block of objectsAt(message, 'message', 'content')) {
    if (block.type !== 'tool_result') continue;
    const id = stringAt(block, 'tool_use_id') ?? '';
    frames.toolResult(id, textOf(block), block.is_error === true);
  }
}

/** The content of a tool result: text, or a list of texts and images. */
function textOf(block: JsonObject): string {
  const content = at(block, 'content');
  if (typeof content === 'string') return content;
  return textOfContent(objectsAt(block, 'content'));
}
