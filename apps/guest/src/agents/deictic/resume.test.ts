import { expect, test } from 'vitest';
import { bodies, expectValid, texts } from '../../../test/deictic/anthropic-body.ts';
import { openSession } from '../../../test/deictic/open-session.ts';
import { readRecord, writeRecord } from './conversation/record.ts';

const TOOL = { name: 'shell', arguments: { command: 'echo cups: 3' } };

test('continues a conversation of three turns in another agent', async () => {
  await using session = await openSession([
    { when: { user: 'count' }, reply: { text: 'Let me look.', tool_calls: [TOOL] } },
    { when: { tool: 'cups: (\\d)' }, reply: { text: '$1 cups.' } },
  ]);
  await session.run('hello');
  await session.run('count the cups');
  session.resume();
  await session.run('thanks');
  const last = bodies(session.server).at(-1);
  if (last === undefined) throw new Error('no request arrived');
  expectValid(last);
  expect(texts(last)).toEqual([
    'hello',
    'You said: hello',
    'count the cups',
    'Let me look.',
    '3 cups.',
    'thanks',
  ]);
  expect(JSON.stringify(last.messages)).toContain('cups: 3');
});

test('continues with another vendor', async () => {
  await using session = await openSession([
    { when: { user: 'count' }, reply: { tool_calls: [TOOL] } },
    { when: { tool: 'cups: (\\d)' }, reply: { text: '$1 cups.' } },
  ]);
  await session.run('count the cups');
  for (const dialect of ['openai', 'google', 'deepseek'] as const) {
    session.resume({ dialect, model: 'm-1' });
    expect((await session.run(`hello ${dialect}`)).result).toBe(`You said: hello ${dialect}`);
  }
});

test.each([
  ['invalid JSON', '{"version":1,'],
  ['of another version', '{"version":9,"conversations":{}}'],
  [
    'with invalid messages',
    JSON.stringify({ version: 1, conversations: { '': [{ role: 'king' }] } }),
  ],
])('starts a new conversation for a record that is %s, and logs it', async (_, conversation) => {
  await using session = await openSession([], { setup: { conversation } });
  expect(session.logged).toHaveLength(1);
  expect((await session.run('hello')).result).toBe('You said: hello');
});

test('continues from a record taken during a turn', async () => {
  await using session = await openSession([
    {
      when: { user: 'wait' },
      reply: { tool_calls: [{ name: 'shell', arguments: { command: 'sleep 1000' } }] },
    },
  ]);
  const interrupt = new AbortController();
  const task = session.run('wait', interrupt.signal);
  await session.seen('tool_call');
  const record = session.agent.conversation();
  interrupt.abort();
  await task;
  session.resume({ conversation: record });
  await session.run('hello');
  const last = bodies(session.server).at(-1);
  if (last === undefined) throw new Error('no request arrived');
  expectValid(last);
  expect(JSON.stringify(last)).toContain('The result was lost.');
});

const SPEAKER = { dialect: 'anthropic', model: 'claude' } as const;

test.each([
  ['characters that JSON escapes', '"'.repeat(1_000_000)],
  ['characters of several bytes', '字'.repeat(1_000_000)],
])('drops the oldest turns of a record that is too long, of %s', (_what, content) => {
  const turn = (text: string) => [
    { role: 'user' as const, content: text },
    { role: 'assistant' as const, content },
  ];
  const messages = ['first', 'second', 'third', 'fourth', 'last'].flatMap(turn);
  const text = writeRecord(new Map([['', messages]]), SPEAKER);
  expect(Buffer.byteLength(JSON.stringify(text))).toBeLessThan(7 * 1024 * 1024);
  const kept = readRecord(text, SPEAKER).get('') ?? [];
  expect(kept[0]?.role).toBe('user');
  expect(JSON.stringify(kept)).toContain('last');
  expect(JSON.stringify(kept)).not.toContain('first');
});

test('drops content specific to one model when another continues', () => {
  const signed = { anthropic: { signature: 'secret' } };
  const messages = [
    { role: 'user' as const, content: 'hello' },
    {
      role: 'assistant' as const,
      content: [
        { type: 'reasoning' as const, text: 'hm', providerOptions: signed },
        { type: 'text' as const, text: 'hi', providerOptions: signed },
      ],
    },
  ];
  const text = writeRecord(new Map([['', messages]]), SPEAKER);
  expect(readRecord(text, SPEAKER).get('')).toEqual(messages);
  expect(readRecord(text, { ...SPEAKER, model: 'other' }).get('')).toEqual([
    { role: 'user', content: 'hello' },
    { role: 'assistant', content: [{ type: 'text', text: 'hi' }] },
  ]);
});
