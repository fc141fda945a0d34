/** OpenAI Responses. https://platform.openai.com/docs/api-reference/responses-streaming */

import { elements, member, stringOf, textOf } from '../json.ts';
import {
  type Answer,
  type Conversation,
  type Dialect,
  type StreamPart,
  serverSentEvent,
} from './dialect.ts';
import { openaiFailure } from './openai-failure.ts';
import { type Item, itemsOf } from './response-items.ts';

export const responses: Dialect = {
  name: 'responses',
  matches: (path) => path.endsWith('/responses'),
  read,
  stream,
  whole: (answer, body) => response(answer, 'completed', itemsOf(answer, body)),
  failure: openaiFailure,
};

function read(body: unknown): Conversation {
  const input = member(body, 'input');
  const items = typeof input === 'string' ? [{ role: 'user', content: input }] : elements(input);
  const textsOf = (...roles: string[]) =>
    items
      .filter((item) => roles.includes(stringOf(member(item, 'role')) ?? ''))
      .map((item) => textOf(member(item, 'content')));
  const newest = items.at(-1);
  const isResult = stringOf(member(newest, 'type'))?.endsWith('_call_output') === true;
  return {
    model: stringOf(member(body, 'model')) ?? '',
    system: [textOf(member(body, 'instructions')), ...textsOf('system', 'developer')].join('\n'),
    user: textsOf('user').at(-1) ?? '',
    tool: isResult ? textOf(member(newest, 'output')) : undefined,
    stream: member(body, 'stream') === true,
  };
}

function response(answer: Answer, status: 'in_progress' | 'completed', items: readonly Item[]) {
  return {
    id: `resp_${answer.id}`,
    object: 'response',
    created_at: Math.floor(Date.now() / 1000),
    status,
    error: null,
    incomplete_details: null,
    model: answer.model,
    output: items.map(({ done }) => done),
    parallel_tool_calls: true,
    tools: [],
    usage: status === 'completed' ? usage(answer) : null,
  };
}

function usage({ usage: { input, output, cached } }: Answer) {
  return {
    input_tokens: input,
    input_tokens_details: { cached_tokens: cached },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: input + output,
  };
}

function stream(answer: Answer, body: unknown): StreamPart[] {
  const items = itemsOf(answer, body);
  const parts: StreamPart[] = [];
  const event = (type: string, data: object, isChunk = false) =>
    parts.push({
      wire: serverSentEvent({ type, sequence_number: parts.length, ...data }, type),
      isChunk,
    });

  event('response.created', { response: response(answer, 'in_progress', []) });
  event('response.in_progress', { response: response(answer, 'in_progress', []) });
  for (const [output_index, item] of items.entries()) {
    event('response.output_item.added', { output_index, item: item.added });
    for (const { type, data, isChunk } of item.events) {
      event(type, { item_id: item.id, output_index, ...data }, isChunk);
    }
    event('response.output_item.done', { output_index, item: item.done });
  }
  event('response.completed', { response: response(answer, 'completed', items) });
  return parts;
}
