import { LIMITS } from '@svc/contract';
import { describe, expect, test } from 'vitest';
import { framesOf, textOf } from '../../test/sessions/session-client.ts';
import { useSessionFixture } from '../../test/sessions/session-fixture.ts';

const WORDS = Array.from({ length: 60 }, (_, index) => `word${index} `);

const fixture = useSessionFixture({
  rules: [
    { when: { user: 'long story' }, reply: { text: WORDS, chunk_delay_ms: 100 } },
    { when: { user: 'endless story' }, reply: { text: WORDS, chunk_delay_ms: 2_000 } },
  ],
});

// The journal does not depend on the agent. `faults.test.ts` checks the numbers of the frames of every agent.
describe.concurrent('a session of deictic', () => {
  test('shows a client that leaves during a stream and returns every frame once, in order', async () => {
    const session = await fixture().create('deictic');
    const watcher = await fixture().attach(session);
    const leaver = await fixture().attach(session);
    leaver.connection.task('A long story, please', { id: 'story' });
    await leaver.until('text_delta', ({ data }) => data.includes('word5'));
    await leaver.close();
    const seen = [...leaver.frames];

    const returned = await fixture().attach(session, leaver.seqs.at(-1));
    await returned.until('task_completed');
    await watcher.until('task_completed');
    expect([...leaver.seqs, ...returned.seqs]).toEqual(watcher.seqs);
    expect(textOf(seen) + textOf(returned.frames)).toBe(WORDS.join(''));
    expect(textOf(watcher.frames)).toBe(WORDS.join(''));
  });

  test('sends the same frames to clients that attach at different points', async () => {
    const session = await fixture().create('deictic');
    const first = await fixture().attach(session);
    const turn = first.task('Another long story', 'story');
    await first.until('text_delta', ({ data }) => data.includes('word3'));
    const late = await Promise.all([0, 1, 3].map((after) => fixture().attach(session, after)));
    await turn;
    for (const client of late) {
      await client.until('task_completed');
      const after = (client.seqs[0] ?? 0) - 1;
      expect(client.seqs).toEqual(first.seqs.filter((seq) => seq > after));
    }
  });

  test('accepts the next task after an interrupt', async () => {
    const session = await fixture().create('deictic');
    const client = await fixture().attach(session);
    client.connection.task('An endless story, please', { id: 'story' });
    await client.until('text_delta');
    client.connection.interrupt();
    const done = await client.until('task_completed', ({ id }) => id === 'story');
    expect(done.status).toBe('interrupted');
    expect(textOf(await client.task('And now?', 'next'))).toContain('And now?');
  });

  test('refuses a ninth waiting task and runs the others in order', async () => {
    const session = await fixture().create('deictic');
    const client = await fixture().attach(session);
    client.connection.task('A long story, please', { id: 'running' });
    await client.until('task_started');
    const waiting = Array.from({ length: LIMITS.queuedTasks }, (_, index) => `waiting-${index}`);
    for (const id of [...waiting, 'too many']) client.connection.task(`Say ${id}`, { id });
    const refused = await client.until('error', ({ code }) => code === 'busy');
    expect(refused.id).toBe('too many');
    await client.until('task_completed', ({ id }) => id === waiting.at(-1));
    expect(framesOf(client.frames, 'task_completed').map(({ id }) => id)).toEqual([
      'running',
      ...waiting,
    ]);
  });
});
