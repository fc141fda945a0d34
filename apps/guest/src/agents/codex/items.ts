import { SERVER_NAME } from '../tool-server/index.ts';
import { type JsonObject, numberAt, objectsAt, stringAt } from '../vendor-cli/json.ts';
import { textOfContent } from '../vendor-cli/tool-content.ts';
import type { TurnFrames } from '../vendor-cli/turn-frames.ts';

/** A thread item that is a tool call. */
interface Call {
  readonly name: string;
  readonly args: unknown;
}

/** Emits the frames of an item that has begun. */
export function framesOfStart(item: JsonObject, frames: TurnFrames): void {
  const call = callOf(item);
  if (call !== undefined) frames.toolCall(stringAt(item, 'id') ?? '', call.name, call.args);
}

/** Emits the frames of a completed item. */
export function framesOfEnd(item: JsonObject, frames: TurnFrames): void {
  if (item.type === 'agentMessage') frames.message(stringAt(item, 'text') ?? '');
  if (callOf(item) === undefined) return;
  // Some items are reported only on completion.
  framesOfStart(item, frames);
  frames.toolResult(stringAt(item, 'id') ?? '', resultOf(item), isError(item));
}

function callOf(item: JsonObject): Call | undefined {
  switch (item.type) {
    case 'commandExecution':
      return { name: 'shell', args: { command: item.command, cwd: item.cwd } };
    case 'fileChange':
      return { name: 'apply_patch', args: { changes: item.changes } };
    case 'mcpToolCall':
      // The template's tools in the words of an app, as for every agent.
      return {
        name: item.server === SERVER_NAME ? String(item.tool) : `${item.server}.${item.tool}`,
        args: item.arguments,
      };
    case 'dynamicToolCall':
      return { name: String(item.tool), args: item.arguments };
    case 'collabAgentToolCall':
      return { name: String(item.tool), args: { prompt: item.prompt } };
    case 'webSearch':
      return { name: 'web_search', args: { query: item.query } };
    case 'imageView':
      return { name: 'view_image', args: { path: item.path } };
    default:
      return undefined;
  }
}

function resultOf(item: JsonObject): string {
  if (item.type === 'commandExecution') return stringAt(item, 'aggregatedOutput') ?? '';
  const error = stringAt(item, 'error', 'message');
  if (error !== undefined) return error;
  const parts = objectsAt(item, 'result', 'content');
  if (parts.length > 0) return textOfContent(parts);
  const content = item.contentItems;
  if (content !== undefined && content !== null) return JSON.stringify(content);
  return stringAt(item, 'status') ?? '';
}

function isError(item: JsonObject): boolean {
  const exitCode = numberAt(item, 'exitCode');
  if (exitCode !== undefined) return exitCode !== 0;
  const status = stringAt(item, 'status');
  return status !== undefined && !['completed', 'inProgress'].includes(status);
}
