import type { ModelMessage, ToolResultPart } from 'ai';
import { truncateMiddle } from '../../tools/truncate.ts';
import { textOf } from './images.ts';

/** Longest entry of a transcript in characters. The content of a file matters less than what was done with it. */
const MAX_PIECE_CHARS = 4_000;

/** A conversation as plain text to summarise, of about `maxChars` characters at most. */
export function transcript(messages: readonly ModelMessage[], maxChars: number): string {
  return truncateMiddle(messages.flatMap(pieces).join('\n\n'), maxChars);
}

function pieces(message: ModelMessage): string[] {
  const { role, content } = message;
  if (typeof content === 'string') return [`${role}: ${short(content)}`];
  return content.flatMap((part) => {
    switch (part.type) {
      case 'text':
        return [`${role}: ${short(part.text)}`];
      case 'tool-call':
        return [`${role} calls ${part.toolName}: ${short(JSON.stringify(part.input))}`];
      case 'tool-result':
        return [`result of ${part.toolName}: ${short(outputText(part.output))}`];
      default:
        return [];
    }
  });
}

function outputText(output: ToolResultPart['output']): string {
  if (output.type === 'content') return textOf(output);
  const value = 'value' in output ? output.value : undefined;
  return typeof value === 'string' ? value : JSON.stringify(value ?? output.type);
}

function short(text: string): string {
  return truncateMiddle(text, MAX_PIECE_CHARS);
}
