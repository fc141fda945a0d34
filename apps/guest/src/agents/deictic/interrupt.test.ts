import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { bodies, expectValid, texts } from '../../../test/deictic/anthropic-body.ts';
import { openSession, type TestSession } from '../../../test/deictic/open-session.ts';

async function expectUsable(session: TestSession): Promise<string[]> {
  expect((await session.run('next')).result).toBe('You said: next');
  const last = bodies(session.server).at(-1);
  if (last === undefined) throw new Error('no request arrived');
  expectValid(last);
  return texts(last);
}

test('during an answer: keeps the text so far, with a note', async () => {
  await using session = await openSession([
    { when: { user: 'tell' }, reply: { text: ['Once upon', ' a time'], chunk_delay_ms: 60_000 } },
  ]);
  const interrupt = new AbortController();
  const task = session.run('tell', interrupt.signal);
  await session.seen('text_delta');
  interrupt.abort();
  const { status, result } = await task;
  expect(status).toBe('interrupted');
  expect(result).toContain('Once upon');
  expect(session.ofType('error')).toEqual([]);
  expect(await expectUsable(session)).toEqual([
    'tell',
    'Once upon\n\n[Interrupted by the user.]',
    'next',
  ]);
});

test('during a tool: kills its processes, and gives every call a result', async () => {
  const command = 'echo $$ > pid; sleep 1000 & sleep 1000';
  await using session = await openSession([
    {
      when: { user: 'wait' },
      reply: {
        tool_calls: [
          { name: 'shell', arguments: { command } },
          { name: 'shell', arguments: { command: 'touch never' } },
        ],
      },
    },
  ]);
  const interrupt = new AbortController();
  const task = session.run('wait', interrupt.signal);
  const pid = await vi.waitFor(
    async () => {
      const text = await readFile(join(session.directory, 'pid'), 'utf8');
      expect(text).not.toBe('');
      return Number(text);
    },
    { timeout: 20_000 },
  );
  interrupt.abort();
  expect((await task).status).toBe('interrupted');
  // The whole group: the shell and its background process.
  await vi.waitFor(() => expect(() => process.kill(-pid, 0)).toThrow('ESRCH'), { timeout: 20_000 });
  const [call, ...others] = session.ofType('tool_call');
  expect(others).toEqual([]);
  expect(session.ofType('tool_result')).toEqual([
    { type: 'tool_result', id: call?.id, content: 'Interrupted by the user.', is_error: true },
  ]);
  await expectUsable(session);
});

test('while the endpoint does not answer, and during the pause before a retry', async () => {
  await using session = await openSession(
    [
      { when: { user: 'hang' }, reply: { fault: 'hang' } },
      { when: { user: 'busy' }, reply: { status: 429, retry_after: '1000' } },
    ],
    { options: { maxPauseMs: 1_000_000 } },
  );
  for (const [index, prompt] of ['hang', 'busy'].entries()) {
    const interrupt = new AbortController();
    const task = session.run(prompt, interrupt.signal);
    await expect.poll(() => session.server.requests).toHaveLength(index + 1);
    if (prompt === 'busy') await expect.poll(() => session.logged).toHaveLength(1);
    interrupt.abort();
    expect((await task).status).toBe('interrupted');
  }
  await expectUsable(session);
});

test('while the link is full', async () => {
  let stuck = true;
  await using session = await openSession([{ when: { user: 'tell' }, reply: { text: 'a tale' } }], {
    drained: () => (stuck ? new Promise(() => undefined) : Promise.resolve()),
  });
  const interrupt = new AbortController();
  const task = session.run('tell', interrupt.signal);
  await session.seen('text_delta');
  interrupt.abort();
  expect((await task).status).toBe('interrupted');
  stuck = false;
  await expectUsable(session);
});

test('before the task began', async () => {
  await using session = await openSession([]);
  expect((await session.run('go', AbortSignal.abort())).status).toBe('interrupted');
  expect(session.server.requests).toHaveLength(0);
  await expectUsable(session);
});

test('closing the agent ends its task and its processes', async () => {
  const command = 'echo $$ > pid; exec sleep 1000';
  await using session = await openSession([
    { when: { user: 'wait' }, reply: { tool_calls: [{ name: 'shell', arguments: { command } }] } },
  ]);
  const task = session.run('wait');
  await session.seen('tool_call');
  await session.agent.close();
  expect((await task).status).toBe('interrupted');
});
