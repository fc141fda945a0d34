/** OpenAI Chat Completions, which DeepSeek and most other vendors use too. */

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
import { openaiFailure } from './openai-failure.ts';

const DONE = 'data: [DONE]\n\n';

export const chatCompletions: Dialect = {
  name: 'chat-completions',
  matches: (path) => path.endsWith('/chat/completions'),
  read,
  stream,
  whole: (answer) => ({
    ...head(answer, 'chat.completion'),
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: answer.chunks.length > 0 ? answer.chunks.join('') : null,
          refusal: null,
          ...(answer.calls.length > 0 ? { tool_calls: answer.calls.map(toolCall) } : {}),
        },
        logprobs: null,
        finish_reason: finishReason(answer),
      },
    ],
    usage: usage(answer),
  }),
  failure: openaiFailure,
};

function read(body: unknown): Conversation {
  const messages = elements(member(body, 'messages'));
  const textsOf = (...roles: string[]) =>
    messages
      .filter((message) => roles.includes(stringOf(member(message, 'role')) ?? ''))
      .map((message) => textOf(member(message, 'content')));
  const newest = messages.at(-1);
  return {
    model: stringOf(member(body, 'model')) ?? '',
    system: textsOf('system', 'developer').join('\n'),
    user: textsOf('user').at(-1) ?? '',
    tool: member(newest, 'role') === 'tool' ? textOf(member(newest, 'content')) : undefined,
    stream: member(body, 'stream') === true,
  };
}

function head({ id, model }: Answer, object: string) {
  const created = Math.floor(Date.now() / 1000);
  return { id: `chatcmpl-${id}`, object, created, model, system_fingerprint: 'fp_scripted' };
}

const finishReason = ({ calls }: Answer) => (calls.length > 0 ? 'tool_calls' : 'stop');

const toolCall = ({ id, name, arguments: args }: ToolCall) => ({
  id: `call_${id}`,
  type: 'function',
  function: { name, arguments: JSON.stringify(args) },
});

function usage({ model, usage: { input, output, cached } }: Answer) {
  return {
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: input + output,
    prompt_tokens_details: { cached_tokens: cached },
    completion_tokens_details: { reasoning_tokens: 0 },
    ...(model.startsWith('deepseek')
      ? { prompt_cache_hit_tokens: cached, prompt_cache_miss_tokens: input - cached }
      : {}),
  };
}

function stream(answer: Answer, body: unknown): StreamPart[] {
  const withUsage = member(member(body, 'stream_options'), 'include_usage') === true;
  const parts: StreamPart[] = [];
  const chunk = (choices: unknown[], isChunk = false, counted: unknown = null) =>
    parts.push({
      wire: serverSentEvent({
        ...head(answer, 'chat.completion.chunk'),
        choices,
        ...(withUsage ? { usage: counted } : {}),
      }),
      isChunk,
    });
  const delta = (change: object, isChunk = false, finish: string | null = null) =>
    chunk([{ index: 0, delta: change, logprobs: null, finish_reason: finish }], isChunk);

  delta({ role: 'assistant', content: answer.chunks.length > 0 ? '' : null, refusal: null });
  for (const content of answer.chunks) delta({ content }, true);
  for (const [index, call] of answer.calls.entries()) {
    const whole = toolCall(call);
    const [first, second] = inHalves(whole.function.arguments);
    delta({
      tool_calls: [{ index, ...whole, function: { name: call.name, arguments: '' } }],
    });
    for (const half of [first, second]) {
      delta({ tool_calls: [{ index, function: { arguments: half } }] });
    }
  }
  delta({}, false, finishReason(answer));
  if (withUsage) chunk([], false, usage(answer));
  parts.push({ wire: DONE, isChunk: false });
  return parts;
}
