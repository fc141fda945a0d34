import { once } from 'node:events';
import { connect } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Rule, Script } from './script.ts';
import { type ModelServer, startModelServer } from './server.ts';

let server: ModelServer;

beforeEach(async () => {
  server = await startModelServer({ script: { rules: [] } });
});

afterEach(() => server.close());

function rules(...list: Rule[]): void {
  server.setScript({ rules: list });
}

function post(path: string, body: unknown): Promise<Response> {
  return fetch(server.url + path, { method: 'POST', body: JSON.stringify(body) });
}

async function json(path: string, body: unknown) {
  return (await post(path, body)).json();
}

interface SentEvent {
  readonly event: string | undefined;
  readonly data: Record<string, unknown>;
}

/** The events of a streamed answer, without `[DONE]`. */
async function events(path: string, body: unknown): Promise<SentEvent[]> {
  const response = await post(path, body);
  expect(response.headers.get('content-type')).toContain('text/event-stream');
  return (await response.text())
    .split('\n\n')
    .filter((block) => block.includes('data: {'))
    .map((block) => ({
      event: /^event: (.*)$/m.exec(block)?.[1],
      data: JSON.parse(/^data: (.*)$/m.exec(block)?.[1] ?? '{}'),
    }));
}

const user = (content: unknown) => ({ role: 'user', content });
const USAGE = { input_tokens: 100, output_tokens: 20, cached_input_tokens: 60 };
const CALL: Rule = {
  when: { user: 'weather in (\\w+)' },
  reply: {
    text: ['Let me ', 'look.'],
    tool_calls: [{ name: 'weather', arguments: { city: '$1' } }],
    usage: USAGE,
  },
};
const QUESTION = 'the weather in Rome?';

describe('Anthropic Messages', () => {
  const ask = { model: 'claude-1', stream: true, messages: [user(QUESTION)] };

  test('streams in Anthropic’s format', async () => {
    rules(CALL);
    const sent = await events('/v1/messages?beta=true', ask);
    expect(sent.map(({ event }) => event)).toEqual([
      ...['message_start', 'content_block_start', 'ping'],
      ...['content_block_delta', 'content_block_delta', 'content_block_stop'],
      ...['content_block_start', 'content_block_delta', 'content_block_delta'],
      ...['content_block_stop', 'message_delta', 'message_stop'],
    ]);
    expect(sent.every(({ event, data }) => data.type === event)).toBe(true);
    expect(sent[0]?.data).toMatchObject({
      message: { model: 'claude-1', usage: { input_tokens: 40, cache_read_input_tokens: 60 } },
    });
    const partial = sent
      .map(({ data }) => (data.delta as { partial_json?: string } | undefined)?.partial_json ?? '')
      .join('');
    expect(JSON.parse(partial)).toEqual({ city: 'Rome' });
    expect(sent.at(-2)?.data).toMatchObject({
      delta: { stop_reason: 'tool_use' },
      usage: { output_tokens: 20 },
    });
  });

  test('answers without streaming, counts tokens, and answers HEAD', async () => {
    rules(CALL);
    expect(await json('/anthropic/v1/messages', { ...ask, stream: false })).toMatchObject({
      type: 'message',
      content: [
        { type: 'text', text: 'Let me look.' },
        { type: 'tool_use', name: 'weather', input: { city: 'Rome' } },
      ],
      usage: { input_tokens: 40, cache_read_input_tokens: 60, output_tokens: 20 },
    });
    expect(await json('/v1/messages/count_tokens', ask)).toEqual({
      input_tokens: expect.any(Number),
    });
    expect((await fetch(server.url, { method: 'HEAD' })).status).toBe(200);
  });

  test('separates the user’s text from reminders and tool results', async () => {
    const reminder = { type: 'text', text: '<system-reminder>be nice</system-reminder>' };
    const result = {
      type: 'tool_result',
      tool_use_id: 't',
      content: [{ type: 'text', text: '22' }],
    };
    rules(
      { when: { tool: '^(\\d+)$' }, reply: { text: 'it is $1' } },
      { when: { user: '^hi$' }, reply: { text: 'hello' } },
    );
    const answerTo = async (...content: unknown[]) => {
      const messages = [user([reminder, { type: 'text', text: 'hi' }]), user(content)];
      const { content: parts } = (await json('/v1/messages', { messages })) as {
        content: { text: string }[];
      };
      return parts[0]?.text;
    };
    expect(await answerTo(result, reminder)).toBe('it is 22');
    expect(await answerTo(result, { type: 'text', text: 'hi' })).toBe('hello');
  });
});

describe('Chat Completions', () => {
  const ask = { model: 'gpt-1', stream: true, messages: [user(QUESTION)] };

  test('streams in OpenAI’s format, with usage on request', async () => {
    rules(CALL);
    const text = await (await post('/v1/chat/completions', ask)).text();
    expect(text.endsWith('data: [DONE]\n\n')).toBe(true);
    expect(text).not.toContain('usage');
    const options = { stream_options: { include_usage: true } };
    const sent = await events('/chat/completions', { ...ask, ...options });
    expect(sent.at(-1)?.data).toMatchObject({
      object: 'chat.completion.chunk',
      choices: [],
      usage: {
        prompt_tokens: 100,
        completion_tokens: 20,
        prompt_tokens_details: { cached_tokens: 60 },
      },
    });
    const choices = sent.slice(0, -1).map(({ data }) => (data.choices as Choice[])[0]);
    expect(choices.map((choice) => choice?.delta.content ?? '').join('')).toBe('Let me look.');
    const calls = choices.flatMap((choice) => choice?.delta.tool_calls ?? []);
    expect(calls[0]).toMatchObject({ index: 0, type: 'function', function: { name: 'weather' } });
    expect(JSON.parse(calls.map((call) => call.function.arguments).join(''))).toEqual({
      city: 'Rome',
    });
    expect(choices.at(-1)?.finish_reason).toBe('tool_calls');
  });

  interface Choice {
    readonly delta: {
      content?: string;
      tool_calls?: { function: { arguments: string } }[];
    };
    readonly finish_reason: string | null;
  }

  test('answers without streaming, with DeepSeek’s usage fields for DeepSeek', async () => {
    rules(CALL);
    expect(
      await json('/chat/completions', { model: 'deepseek-1', messages: [user(QUESTION)] }),
    ).toMatchObject({
      choices: [{ message: { content: 'Let me look.' }, finish_reason: 'tool_calls' }],
      usage: { prompt_cache_hit_tokens: 60, prompt_cache_miss_tokens: 40 },
    });
  });
});

describe('Responses', () => {
  const ask = { model: 'gpt-1', stream: true, instructions: 'help', input: [user(QUESTION)] };

  test('streams in OpenAI’s format', async () => {
    rules(CALL);
    const sent = await events('/v1/responses', ask);
    expect(sent.map(({ event }) => event?.replace('response.', ''))).toEqual([
      ...['created', 'in_progress', 'output_item.added', 'content_part.added'],
      ...['output_text.delta', 'output_text.delta', 'output_text.done', 'content_part.done'],
      ...['output_item.done', 'output_item.added', 'function_call_arguments.delta'],
      ...['function_call_arguments.delta', 'function_call_arguments.done', 'output_item.done'],
      'completed',
    ]);
    expect(sent.map(({ data }) => data.sequence_number)).toEqual(sent.map((_one, at) => at));
    expect(sent.at(-1)?.data).toMatchObject({
      response: {
        status: 'completed',
        output: [{ type: 'message' }, { type: 'function_call', arguments: '{"city":"Rome"}' }],
        usage: {
          input_tokens: 100,
          input_tokens_details: { cached_tokens: 60 },
          output_tokens: 20,
          total_tokens: 120,
        },
      },
    });
  });

  test('calls custom tools with plain text and reads their results', async () => {
    rules(
      {
        when: { user: 'patch' },
        reply: { tool_calls: [{ name: 'apply_patch', arguments: '*** x' }] },
      },
      { when: { tool: 'done' }, reply: { text: 'patched' } },
    );
    const tools = [{ type: 'custom', name: 'apply_patch' }];
    const input: unknown[] = [
      { type: 'message', ...user([{ type: 'input_text', text: 'patch' }]) },
    ];
    expect(await json('/responses', { input, tools })).toMatchObject({
      output: [{ type: 'custom_tool_call', name: 'apply_patch', input: '*** x' }],
    });
    input.push({ type: 'custom_tool_call_output', call_id: 'c', output: 'done' });
    expect(await json('/responses', { input, tools })).toMatchObject({
      output: [{ content: [{ type: 'output_text', text: 'patched' }] }],
    });
  });
});

describe('Google', () => {
  const ask = { contents: [{ role: 'user', parts: [{ text: QUESTION }] }] };
  const model = '/v1beta/models/gemini-1';

  test('streams in Google’s format, as events and as a list', async () => {
    rules(CALL);
    const sent = (await events(`${model}:streamGenerateContent?alt=sse`, ask)).map(
      ({ data }) => data,
    );
    expect(sent.at(-1)).toMatchObject({
      candidates: [
        {
          content: { parts: [{ functionCall: { name: 'weather', args: { city: 'Rome' } } }] },
          finishReason: 'STOP',
        },
      ],
      usageMetadata: {
        promptTokenCount: 100,
        candidatesTokenCount: 20,
        cachedContentTokenCount: 60,
      },
      modelVersion: 'gemini-1',
    });
    expect(await json(`${model}:streamGenerateContent`, ask)).toHaveLength(sent.length);
  });

  test('answers without streaming and reads tool results', async () => {
    rules({ when: { tool: 'sunny' }, reply: { text: 'it is' } });
    const result = {
      role: 'user',
      parts: [{ functionResponse: { name: 'w', response: 'sunny' } }],
    };
    expect(
      await json(`${model}:generateContent`, { contents: [...ask.contents, result] }),
    ).toMatchObject({
      candidates: [{ content: { parts: [{ text: 'it is' }] } }],
    });
  });
});

describe('rules', () => {
  const chat = async (text: string, more: object = {}) => {
    const answer = (await json('/chat/completions', { messages: [user(text)], ...more })) as {
      choices: { message: { content: string } }[];
    };
    return answer.choices[0]?.message.content;
  };

  test('answer in order up to their limits; without a match the user’s text is repeated', async () => {
    rules(
      { when: { user: 'hi' }, times: 2, reply: { text: 'first' } },
      { when: { model: 'gpt', user: 'hi (\\w+)' }, reply: { text: ['$1', ' and $2'] } },
    );
    expect(await chat('hi')).toBe('first');
    expect(await chat('hi')).toBe('first');
    expect(await chat('hi you', { model: 'gpt-1' })).toBe('you and $2');
    expect(await chat('hi you', { model: 'other' })).toBe('You said: hi you');
  });

  test('without a tool condition do not answer a tool result, unless they have no conditions', async () => {
    const messages = [user('hi'), { role: 'tool', tool_call_id: 'c', content: 'done' }];
    rules({ when: { user: 'hi' }, reply: { text: 'again' } });
    expect(await chat('', { messages })).toBe('You said: hi');
    rules({ reply: { text: 'whatever' } });
    expect(await chat('', { messages })).toBe('whatever');
  });

  test('that are invalid are rejected with their path', () => {
    const script = { rules: [{ reply: { fault: 'explode' } }] } as unknown as Script;
    expect(() => server.setScript(script)).toThrow('/rules/0/reply/fault');
  });
});

describe('errors', () => {
  test.each([
    ['/v1/messages', { type: 'error', error: { type: 'rate_limit_error' } }],
    ['/v1/chat/completions', { error: { code: 'rate_limit_exceeded' } }],
    ['/v1/responses', { error: { code: 'rate_limit_exceeded' } }],
    ['/models/m:generateContent', { error: { status: 'RESOURCE_EXHAUSTED' } }],
  ])('have the vendor’s format at %s', async (path, body) => {
    rules({ reply: { status: 429, retry_after: '3' } });
    const response = await post(path, {});
    expect([response.status, response.headers.get('retry-after')]).toEqual([429, '3']);
    expect(await response.json()).toMatchObject(body);
  });

  test('can truncate the answer, reset the connection, and send garbage', async () => {
    const ask = { stream: true, messages: [] };
    rules({ reply: { text: ['a', 'b'], fault: 'cut' } });
    const cut = await post('/v1/messages', ask);
    expect(cut.status).toBe(200);
    await expect(cut.text()).rejects.toThrow();
    rules({ reply: { fault: 'close' } });
    await expect(post('/v1/messages', ask)).rejects.toThrow();
    rules({ reply: { fault: 'garbage' } });
    expect(await (await post('/v1/messages', ask)).text()).toContain('html');
  });

  test('hang until the server stops', async () => {
    rules({ reply: { fault: 'hang' } });
    const hanging = post('/v1/messages', {}).catch(() => 'ended');
    await expect.poll(() => server.requests.length).toBe(1);
    await server.close();
    expect(await hanging).toBe('ended');
  });
});

test('requests are logged and can be listed over HTTP', async () => {
  await post('/v1/messages?beta=true', { messages: [user('hi')] });
  await post('/nothing', 'text');
  const listed = (await (await fetch(`${server.url}/__requests`)).json()) as unknown[];
  expect(listed).toMatchObject([
    {
      dialect: 'anthropic',
      method: 'POST',
      path: '/v1/messages?beta=true',
      body: { messages: [{}] },
    },
    { path: '/nothing', body: 'text' },
  ]);
  expect(server.requests).toHaveLength(2);
});

test('rejects a body that is too large', async () => {
  const { hostname, port } = new URL(server.url);
  const socket = connect(Number(port), hostname).on('error', () => undefined);
  const answered = once(socket, 'data');
  socket.write('POST /v1/messages HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n');
  const piece = `100000\r\n${'x'.repeat(0x100000)}\r\n`;
  for (let sent = 0; sent < 34; sent += 1) socket.write(piece);
  const [data] = await answered;
  expect(String(data)).toContain('413');
  socket.destroy();
});
