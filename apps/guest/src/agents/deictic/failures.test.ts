import type { Reply } from '@svc/model-server';
import { describe, expect, test } from 'vitest';
import { bodies, expectValid, texts } from '../../../test/deictic/anthropic-body.ts';
import { openSession } from '../../../test/deictic/open-session.ts';

const ATTEMPTS = 3;

const FAILURES: readonly [name: string, reply: Reply, code: string, calls: number][] = [
  ['401', { status: 401 }, 'llm_unauthorized', 1],
  ['403', { status: 403 }, 'llm_unauthorized', 1],
  ['400', { status: 400 }, 'llm_refused', 1],
  ['402', { status: 402 }, 'llm_refused', 1],
  ['404', { status: 404 }, 'llm_refused', 1],
  ['429', { status: 429 }, 'llm_rate_limited', ATTEMPTS],
  ['529', { status: 529 }, 'llm_overloaded', ATTEMPTS],
  ['503', { status: 503 }, 'llm_overloaded', ATTEMPTS],
  ['500', { status: 500 }, 'llm_unavailable', ATTEMPTS],
  ['502', { status: 502 }, 'llm_unavailable', ATTEMPTS],
  ['a reset connection', { fault: 'close' }, 'llm_unavailable', ATTEMPTS],
  ['garbage', { fault: 'garbage' }, 'llm_bad_response', 1],
  ['an answer of another kind', { body: { hello: 'world' } }, 'llm_bad_response', 1],
  ['an answer cut off', { text: ['half ', 'an ', 'answer'], fault: 'cut' }, 'llm_bad_response', 1],
];

describe.each(['anthropic', 'openai', 'google', 'deepseek'] as const)('%s', (dialect) => {
  test.each(FAILURES)(
    '%s: reports an error and continues the session',
    async (_, reply, code, calls) => {
      await using session = await openSession(
        [
          { when: { user: 'fail' }, reply },
          { when: { user: 'again' }, reply: { text: 'here I am' } },
        ],
        { setup: { dialect, model: 'm-1' }, options: { attempts: ATTEMPTS } },
      );
      const outcome = await session.run('fail');
      const [error] = session.ofType('error');
      expect(error).toMatchObject({ code });
      expect(outcome).toEqual({ status: 'failed', result: error?.message });
      expect(session.server.requests).toHaveLength(calls);
      expect(session.ofType('message')).toEqual([]);
      expect(await session.run('again')).toEqual({ status: 'completed', result: 'here I am' });
    },
  );
});

test.concurrent.each(
  (['anthropic', 'openai', 'google', 'deepseek'] as const).flatMap((dialect) => [
    { dialect, what: 'an endpoint that does not answer', reply: { fault: 'hang' } as const },
    {
      dialect,
      what: 'an answer that stalls',
      reply: { text: ['half', '…'], chunk_delay_ms: 60_000 },
    },
  ]),
)('$dialect: $what fails after a time limit, without a retry', async ({ dialect, reply }) => {
  await using session = await openSession(
    [
      { when: { user: 'fail' }, reply },
      { when: { user: 'again' }, reply: { text: 'here I am' } },
    ],
    { setup: { dialect, model: 'm-1' }, options: { attempts: ATTEMPTS, silenceMs: 2_000 } },
  );
  expect((await session.run('fail')).status).toBe('failed');
  expect(session.ofType('error')).toMatchObject([{ code: 'llm_unavailable' }]);
  expect(session.server.requests).toHaveLength(1);
  expect(await session.run('again')).toEqual({ status: 'completed', result: 'here I am' });
});

test('hides transient failures', async () => {
  await using session = await openSession([
    { times: 1, reply: { status: 529 } },
    { times: 1, reply: { fault: 'close' } },
    { times: 1, reply: { status: 429, retry_after: '0' } },
    { reply: { text: 'at last' } },
  ]);
  expect(await session.run('go')).toEqual({ status: 'completed', result: 'at last' });
  expect(session.ofType('error')).toEqual([]);
  expect(session.logged.filter((line) => line.startsWith('model call failed'))).toHaveLength(3);
});

test('retries an overload reported in the stream before any text', async () => {
  const overloaded = {
    type: 'error',
    error: { type: 'overloaded_error', message: 'Overloaded' },
  };
  await using session = await openSession([
    { times: 1, reply: { body: `event: error\ndata: ${JSON.stringify(overloaded)}\n\n` } },
    { reply: { text: 'at last' } },
  ]);
  expect(await session.run('go')).toEqual({ status: 'completed', result: 'at last' });
});

test('drops a broken answer and keeps the steps before it', async () => {
  await using session = await openSession([
    {
      when: { user: 'fail' },
      reply: { tool_calls: [{ name: 'shell', arguments: { command: 'echo done' } }] },
    },
    { when: { tool: 'done' }, reply: { text: ['broken', ' off'], fault: 'cut' } },
  ]);
  expect((await session.run('fail')).status).toBe('failed');
  expect((await session.run('again')).result).toBe('You said: again');
  const last = bodies(session.server).at(-1);
  if (last === undefined) throw new Error('no request arrived');
  expectValid(last);
  expect(JSON.stringify(last)).not.toContain('broken');
  expect(JSON.stringify(last)).toContain('done');
  expect(texts(last)).toContain('[The task failed before it was finished.]');
});

test.each([
  [400, 'messages.0: image exceeds 5 MB maximum'],
  [413, 'Request too large'],
  [422, 'messages: credit-report.png has an invalid type'],
])('does not send a refused prompt again: %i, %s', async (status, message) => {
  const body = { type: 'error', error: { type: 'invalid_request_error', message } };
  await using session = await openSession([
    { when: { user: 'poison' }, reply: { status, body } },
    { reply: { text: 'fine' } },
  ]);
  expect((await session.run('hello')).status).toBe('completed');
  expect((await session.run('poison')).status).toBe('failed');
  expect((await session.run('well?')).status).toBe('completed');
  const last = bodies(session.server).at(-1);
  if (last === undefined) throw new Error('no request arrived');
  expectValid(last);
  expect(JSON.stringify(last)).not.toContain('poison');
  expect(texts(last)[0]).toBe('hello');
});

test('does not send a prompt again that a content filter refused', async () => {
  const chunk = {
    id: 'c',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'gpt-4o',
    choices: [{ index: 0, delta: {}, finish_reason: 'content_filter' }],
  };
  const body = `data: ${JSON.stringify(chunk)}\n\ndata: [DONE]\n\n`;
  await using session = await openSession(
    [
      { when: { user: 'poison' }, reply: { body } },
      { when: { user: 'well' }, reply: { text: 'fine' } },
    ],
    { setup: { dialect: 'openai', model: 'gpt-4o' } },
  );
  expect((await session.run('poison')).status).toBe('failed');
  expect(session.ofType('error')).toMatchObject([{ code: 'llm_refused' }]);
  expect((await session.run('well?')).status).toBe('completed');
  expect(JSON.stringify(session.server.requests.at(-1)?.body)).not.toContain('poison');
});

const NOT_ABOUT_THE_CONVERSATION: readonly [status: number, message: string][] = [
  [402, 'Insufficient Balance'],
  [404, 'model: claude-test'],
  [409, 'Conflict'],
  [400, 'Your credit balance is too low to access the Anthropic API.'],
  [400, 'You have reached your specified API usage limits.'],
  [400, 'Billing hard limit has been reached'],
  [400, 'User location is not supported for the API use without a billing account linked.'],
  [400, 'API key not valid. Please pass a valid API key.'],
  [400, 'Model Not Exist'],
  [400, 'vendor/claude-test is not a valid model ID'],
  [400, 'The model `claude-test` has been decommissioned and is no longer supported.'],
];

test.each(NOT_ABOUT_THE_CONVERSATION)(
  'remembers the task after %i: %s',
  async (status, message) => {
    const body = { type: 'error', error: { type: 'invalid_request_error', message } };
    await using session = await openSession([
      {
        when: { user: 'fail' },
        reply: { tool_calls: [{ name: 'shell', arguments: { command: 'echo paid' } }] },
      },
      { when: { tool: 'paid' }, reply: { status, body } },
      { when: { user: 'go on' }, reply: { text: 'done' } },
    ]);
    expect((await session.run('fail')).status).toBe('failed');
    expect(session.ofType('error')).toMatchObject([{ code: 'llm_refused' }]);
    expect(await session.run('go on')).toEqual({ status: 'completed', result: 'done' });
    const last = bodies(session.server).at(-1);
    if (last === undefined) throw new Error('no request arrived');
    expectValid(last);
    expect(JSON.stringify(last)).toContain('echo paid');
    expect(texts(last)).toContain('[The task failed before it was finished.]');
  },
);

test('does not pass on the vendor’s message about a key', async () => {
  const body = { error: { message: 'Incorrect API key provided: sk-live-canary' } };
  await using session = await openSession([{ reply: { status: 401, body } }], {
    setup: { dialect: 'openai', model: 'gpt-4o' },
  });
  await session.run('go');
  expect(JSON.stringify([session.frames, session.logged])).not.toContain('canary');
});

test('retries an unreachable endpoint', async () => {
  await using session = await openSession([], {
    // A port that is never assigned automatically, and that `fetch` does not block.
    setup: { gateway: 'http://127.0.0.1:2/anthropic' },
    options: { attempts: ATTEMPTS },
  });
  expect((await session.run('go')).status).toBe('failed');
  expect(session.ofType('error')).toMatchObject([{ code: 'llm_unavailable' }]);
  expect(session.logged).toHaveLength(ATTEMPTS - 1);
});

test('rejects an answer with duplicate tool call ids', async () => {
  const call = (index: number) => [
    {
      type: 'content_block_start',
      index,
      content_block: { type: 'tool_use', id: 'same', name: 'shell', input: {} },
    },
    {
      type: 'content_block_delta',
      index,
      delta: { type: 'input_json_delta', partial_json: '{"command":"touch made"}' },
    },
    { type: 'content_block_stop', index },
  ];
  const usage = { input_tokens: 1, output_tokens: 1 };
  const events = [
    { type: 'message_start', message: { id: 'm', model: 'm', usage } },
    ...call(0),
    ...call(1),
    { type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage },
    { type: 'message_stop' },
  ];
  const body = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('');
  await using session = await openSession([{ reply: { body } }]);
  expect((await session.run('go')).status).toBe('failed');
  expect(session.ofType('error')).toMatchObject([{ code: 'llm_bad_response' }]);
  expect(session.ofType('tool_call')).toEqual([]);
});
