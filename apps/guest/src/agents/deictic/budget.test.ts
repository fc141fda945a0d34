import { expect, test } from 'vitest';
import { openSession } from '../../../test/deictic/open-session.ts';

const AGAIN = { tool_calls: [{ name: 'shell', arguments: { command: 'echo again' } }] };

test('ends a task at its turn limit; the next task has its own', async () => {
  await using session = await openSession(
    [
      { when: { user: 'loop' }, reply: AGAIN },
      { when: { tool: 'again', user: 'loop' }, reply: AGAIN },
    ],
    { options: { turns: 3 } },
  );
  expect((await session.run('loop')).status).toBe('failed');
  expect(session.ofType('error')).toMatchObject([{ code: 'turn_limit' }]);
  expect(session.server.requests).toHaveLength(3);
  expect((await session.run('hello')).status).toBe('completed');
});

test('limits the tokens that the endpoint reports; the answer that exceeds the limit still counts', async () => {
  const usage = { input_tokens: 600, output_tokens: 100 };
  await using session = await openSession(
    [
      { when: { user: 'loop' }, reply: { ...AGAIN, usage } },
      { when: { tool: 'again', user: 'loop' }, reply: { ...AGAIN, usage } },
      { when: { user: 'once' }, reply: { text: 'done', usage: { ...usage, input_tokens: 5_000 } } },
    ],
    { options: { tokens: 1_000 } },
  );
  expect((await session.run('loop')).status).toBe('failed');
  expect(session.ofType('error')).toMatchObject([{ code: 'token_limit' }]);
  expect(session.server.requests).toHaveLength(2);
  expect(await session.run('once')).toEqual({ status: 'completed', result: 'done' });
});
