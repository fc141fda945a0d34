/** Anthropic Messages. https://platform.claude.com/docs/en/build-with-claude/streaming */

import { elements, member, stringOf, textOf } from '../json.ts';
import {
  type Answer,
  type Conversation,
  type Dialect,
  inHalves,
  type StreamPart,
  serverSentEvent,
  type ToolCall,
} from './dialect.ts';

const ERROR_TYPES: Readonly<Record<number, string>> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  504: 'timeout_error',
  529: 'overloaded_error',
};
/** Claude Code adds such reminders to the user's text. */
const REMINDER = /^\s*<system-reminder>/;

export const anthropic: Dialect = {
  name: 'anthropic',
  matches: (path) => path.endsWith('/messages'),
  read,
  stream,
  whole: (answer) => ({
    ...head(answer),
    content: [
      ...(answer.chunks.length > 0 ? [{ type: 'text', text: answer.chunks.join('') }] : []),
      ...answer.calls.map((call) => ({ ...toolUse(call), input: call.arguments })),
    ],
    stop_reason: stopReason(answer),
    usage: usage(answer, answer.usage.output),
  }),
  failure: (status, message) => ({
    type: 'error',
    error: { type: ERROR_TYPES[status] ?? 'api_error', message },
    request_id: 'req_scripted',
  }),
};

function read(body: unknown): Conversation {
  const messages = elements(member(body, 'messages'));
  const ofSystem = messages.filter((message) => member(message, 'role') === 'system');
  const newest = messages.findLast((message) => member(message, 'role') !== 'system');
  const texts = messages
    .filter((message) => member(message, 'role') === 'user')
    .map((message) => userText(message))
    .filter((text) => text !== '');
  return {
    model: stringOf(member(body, 'model')) ?? '',
    system: [member(body, 'system'), ...ofSystem.map(content)].map(textOf).join('\n'),
    user: texts.at(-1) ?? '',
    tool: toolResult(newest),
    stream: member(body, 'stream') === true,
  };
}

const content = (message: unknown): unknown => member(message, 'content');

/** The user's text in a message: the text after the last tool result, without reminders. */
function userText(message: unknown): string {
  const parts = content(message);
  if (!Array.isArray(parts)) return textOf(parts);
  const from = parts.findLastIndex((part) => member(part, 'type') === 'tool_result') + 1;
  const texts = parts.slice(from).map(textOf);
  const own = texts.filter((text) => text !== '' && !REMINDER.test(text));
  // A message with tool results and only reminders has no text of the user.
  return own.length === 0 && from === 0 ? texts.join('\n') : own.join('\n');
}

function toolResult(message: unknown): string | undefined {
  const parts = elements(content(message)).filter((part) => !REMINDER.test(textOf(part)));
  const last = parts.at(-1);
  return member(last, 'type') === 'tool_result' ? textOf(content(last)) : undefined;
}

function head({ id, model }: Answer) {
  return {
    id: `msg_${id}`,
    type: 'message',
    role: 'assistant',
    model,
    content: [] as unknown[],
    stop_reason: null as string | null,
    stop_sequence: null,
  };
}

/** Anthropic counts cached tokens separately from the rest of the input. */
function usage({ usage: { input, cached } }: Answer, output: number) {
  return {
    input_tokens: input - cached,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: cached,
    output_tokens: output,
  };
}

const stopReason = ({ calls }: Answer) => (calls.length > 0 ? 'tool_use' : 'end_turn');

const toolUse = ({ id, name }: ToolCall) => ({ type: 'tool_use', id: `toolu_${id}`, name });

function stream(answer: Answer): StreamPart[] {
  const parts: StreamPart[] = [];
  const event = (type: string, data: object, isChunk = false) =>
    parts.push({ wire: serverSentEvent({ type, ...data }, type), isChunk });
  const delta = (index: number, change: object, isChunk = false) =>
    event('content_block_delta', { index, delta: change }, isChunk);

  event('message_start', { message: { ...head(answer), usage: usage(answer, 1) } });
  let index = 0;
  if (answer.chunks.length > 0) {
    event('content_block_start', { index, content_block: { type: 'text', text: '' } });
    event('ping', {});
    for (const text of answer.chunks) delta(index, { type: 'text_delta', text }, true);
    event('content_block_stop', { index });
    index += 1;
  }
  for (const call of answer.calls) {
    event('content_block_start', { index, content_block: { ...toolUse(call), input: {} } });
    for (const partial_json of inHalves(JSON.stringify(call.arguments))) {
      delta(index, { type: 'input_json_delta', partial_json });
    }
    event('content_block_stop', { index });
    index += 1;
  }
  event('message_delta', {
    delta: { stop_reason: stopReason(answer), stop_sequence: null },
    usage: usage(answer, answer.usage.output),
  });
  event('message_stop', {});
  return parts;
}
