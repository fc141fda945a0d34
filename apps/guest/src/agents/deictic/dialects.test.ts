import { AgentFrame, type LlmDialect, PLACEHOLDER_LLM_KEY } from '@svc/contract';
import { Value } from 'typebox/value';
import { describe, expect, test } from 'vitest';
import { bodies, texts } from '../../../test/deictic/anthropic-body.ts';
import { openSession } from '../../../test/deictic/open-session.ts';

const DIALECTS: readonly [LlmDialect, model: string, path: string][] = [
  ['anthropic', 'claude-sonnet-4-5', '/v1/messages'],
  ['openai', 'gpt-4o', '/chat/completions'],
  ['openai', 'some/local-model', '/chat/completions'],
  ['google', 'gemini-2.5-pro', '/models/gemini-2.5-pro:streamGenerateContent?alt=sse'],
  ['deepseek', 'deepseek-chat', '/chat/completions'],
];

describe.each(DIALECTS)('%s with %s', (dialect, model, path) => {
  test('streams text, runs the tool that the model asks for, and answers', async () => {
    await using session = await openSession(
      [
        {
          when: { user: 'make (\\w+)' },
          reply: {
            text: ['I will ', 'do that.'],
            tool_calls: [{ name: 'shell', arguments: { command: 'echo $1 > made; cat made' } }],
          },
        },
        { when: { tool: '(tea)' }, reply: { text: ['It says ', '$1.'] } },
      ],
      { setup: { dialect, model } },
    );
    const outcome = await session.run('make tea');
    expect(outcome).toEqual({ status: 'completed', result: 'It says tea.' });
    const [call] = session.ofType('tool_call');
    expect(session.frames).toEqual([
      { type: 'text_delta', data: 'I will ' },
      { type: 'text_delta', data: 'do that.' },
      { type: 'message', role: 'assistant', content: 'I will do that.' },
      {
        type: 'tool_call',
        id: expect.any(String),
        name: 'shell',
        arguments: { command: 'echo tea > made; cat made' },
      },
      { type: 'tool_result', id: call?.id, content: 'tea', is_error: false },
      { type: 'text_delta', data: 'It says ' },
      { type: 'text_delta', data: 'tea.' },
      { type: 'message', role: 'assistant', content: 'It says tea.' },
    ]);
    for (const frame of session.frames) expect(Value.Check(AgentFrame, frame)).toBe(true);
    expect(session.server.requests.map((request) => request.path)).toEqual([path, path]);
    expect(JSON.stringify(session.server.requests[0]?.headers)).toContain(PLACEHOLDER_LLM_KEY);
    expect(JSON.stringify(session.server.requests[0]?.body)).toContain(session.directory);
  });
});

test('requests prompt caching where the vendor requires it', async () => {
  await using session = await openSession([
    {
      when: { user: 'go' },
      reply: { tool_calls: [{ name: 'shell', arguments: { command: 'echo tea' } }] },
    },
    { when: { tool: 'tea' }, reply: { text: 'done' } },
  ]);
  await session.run('go');
  for (const { system, messages } of bodies(session.server)) {
    const last = messages.at(-1)?.content.at(-1);
    for (const part of [(system as unknown[]).at(-1), last]) {
      expect(part).toMatchObject({ cache_control: { type: 'ephemeral' } });
    }
  }
});

test('does not send blank text back to the model', async () => {
  await using session = await openSession([{ when: { user: 'go' }, reply: { text: ' \n' } }]);
  expect((await session.run('go')).status).toBe('completed');
  await session.run('and?');
  const [, last] = bodies(session.server);
  expect(last && texts(last)).toEqual(['go', '[No answer.]', 'and?']);
});

test('runs several tools of one answer in order, and returns all their results', async () => {
  const shell = (command: string) => ({ name: 'shell', arguments: { command } });
  await using session = await openSession(
    [
      {
        when: { user: 'go' },
        reply: { tool_calls: [shell('echo one >> log'), shell('echo two >> log; cat log')] },
      },
      { when: { tool: 'one\ntwo' }, reply: { text: 'both' } },
    ],
    { setup: { dialect: 'openai', model: 'gpt-4o' } },
  );
  expect(await session.run('go')).toEqual({ status: 'completed', result: 'both' });
  expect(session.frames.map(({ type }) => type)).toEqual([
    'tool_call',
    'tool_result',
    'tool_call',
    'tool_result',
    'text_delta',
    'message',
  ]);
});

test('reports invalid tool calls to the model, which continues', async () => {
  await using session = await openSession([
    {
      when: { user: 'go' },
      reply: {
        tool_calls: [
          { name: 'shell', arguments: { order: 'ls' } },
          { name: 'teleport', arguments: {} },
        ],
      },
    },
    { when: { tool: 'teleport' }, reply: { text: 'never mind' } },
  ]);
  expect(await session.run('go')).toEqual({ status: 'completed', result: 'never mind' });
  const results = session.ofType('tool_result');
  expect(results.map(({ is_error }) => is_error)).toEqual([true, true]);
  expect(results[1]?.content).toBe('There is no tool teleport here.');
});

test('stops reading the answer while the link is full', async () => {
  let open = () => {};
  const drained = new Promise<void>((resolve) => {
    open = resolve;
  });
  await using session = await openSession([{ reply: { text: ['one', 'two', 'three'] } }], {
    drained: () => drained,
  });
  const task = session.run('count');
  await session.seen('text_delta');
  await new Promise((resolve) => setImmediate(resolve));
  expect(session.frames).toHaveLength(1);
  open();
  expect((await task).result).toBe('onetwothree');
});

test('continues an answer that was cut at the output limit', async () => {
  const cut = { choices: [{ index: 0, delta: { content: 'first, ' }, finish_reason: 'length' }] };
  await using session = await openSession(
    [
      {
        when: { user: 'tell' },
        times: 1,
        reply: { body: `data: ${JSON.stringify(cut)}\n\ndata: [DONE]\n\n` },
      },
      { when: { user: 'Continue exactly' }, reply: { text: 'second' } },
    ],
    { setup: { dialect: 'openai', model: 'gpt-4o' } },
  );
  expect(await session.run('tell')).toEqual({ status: 'completed', result: 'first, second' });
});
