import { expect, test } from 'vitest';
import { bodies, expectValid, texts } from '../../../test/deictic/anthropic-body.ts';
import { openSession } from '../../../test/deictic/open-session.ts';

const SUMMARISER = 'You compress the record';

test('summarises a conversation that outgrows the window, and continues', async () => {
  await using session = await openSession(
    [
      { when: { system: SUMMARISER }, reply: { text: 'SUMMARY: the user likes tea' } },
      { when: { user: 'story' }, reply: { text: 'x'.repeat(9_000) } },
    ],
    { options: { contextWindow: 6_000 } },
  );
  await session.run('I like tea');
  await session.run('a story');
  await session.run('another story');
  expect((await session.run('and now?')).result).toBe('You said: and now?');
  const requests = bodies(session.server);
  const summaries = requests.filter((body) => JSON.stringify(body.system).includes(SUMMARISER));
  expect(summaries).toHaveLength(1);
  expect(JSON.stringify(summaries)).toContain('I like tea');
  const last = requests.at(-1);
  if (last === undefined) throw new Error('no request arrived');
  expectValid(last);
  expect(texts(last)[0]).toContain('SUMMARY: the user likes tea');
  expect(texts(last).at(-1)).toBe('and now?');
  expect(JSON.stringify(last).length).toBeLessThan(16_000);
  expect(session.ofType('text_delta').map(({ data }) => data)).not.toContain('SUMMARY');
});

test('uses the endpoint’s token count if there is one', async () => {
  const usage = { input_tokens: 190_000, output_tokens: 10 };
  await using session = await openSession([
    { when: { system: SUMMARISER }, reply: { text: 'SUMMARY' } },
    { when: { user: 'big' }, reply: { text: 'fine', usage } },
  ]);
  await session.run('big');
  await session.run('next');
  expect(session.logged.join()).toContain('compacted');
  expect(session.server.requests).toHaveLength(3);
});

test('summarises within a long task, and keeps its request', async () => {
  const read = (n: number) => ({ name: 'shell', arguments: { command: `seq ${n} ${n + 800}` } });
  await using session = await openSession(
    [
      { when: { system: SUMMARISER }, reply: { text: 'SUMMARY' } },
      { when: { user: 'find the needle' }, times: 1, reply: { tool_calls: [read(1000)] } },
      { when: { tool: '^1000' }, times: 1, reply: { tool_calls: [read(2000)] } },
      { when: { tool: '^2000' }, times: 1, reply: { tool_calls: [read(3000)] } },
      { when: { tool: '^3000' }, times: 1, reply: { tool_calls: [read(4000)] } },
      { when: { tool: '^4000' }, times: 1, reply: { text: 'found' } },
    ],
    { options: { contextWindow: 4_000 } },
  );
  expect(await session.run('find the needle')).toEqual({ status: 'completed', result: 'found' });
  const last = bodies(session.server).at(-1);
  if (last === undefined) throw new Error('no request arrived');
  expectValid(last);
  expect(texts(last)[0]).toContain('SUMMARY');
  expect(texts(last)[0]).toContain('find the needle');
});

test('compacts and retries when the endpoint reports an overlong prompt', async () => {
  const body = {
    type: 'error',
    error: { type: 'invalid_request_error', message: 'prompt is too long: 9 tokens > 8 maximum' },
  };
  await using session = await openSession([
    { when: { system: SUMMARISER }, reply: { text: 'SUMMARY' } },
    { when: { user: 'next' }, times: 1, reply: { status: 400, body } },
  ]);
  await session.run('y'.repeat(30_000));
  expect((await session.run('next')).status).toBe('completed');
  expect(session.ofType('error')).toEqual([]);
  const last = bodies(session.server).at(-1);
  if (last === undefined) throw new Error('no request arrived');
  expect(texts(last)[0]).toContain('SUMMARY');
});

test('fails only the task when the endpoint keeps reporting an overlong prompt', async () => {
  const body = { error: { message: 'maximum context length is 1 token' } };
  await using session = await openSession(
    [
      { when: { system: SUMMARISER }, reply: { text: 'SUMMARY' } },
      { when: { user: 'long' }, reply: { status: 400, body } },
    ],
    { setup: { dialect: 'openai', model: 'gpt-4o' } },
  );
  expect((await session.run('long')).status).toBe('failed');
  expect(session.ofType('error')).toMatchObject([{ code: 'llm_refused' }]);
  expect((await session.run('hello')).status).toBe('completed');
});
