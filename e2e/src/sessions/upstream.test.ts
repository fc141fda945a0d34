import type { Agent } from '@svc/contract';
import { describe, expect, test } from 'vitest';
import { forEachAgent } from '../../test/sessions/for-each-agent.ts';
import { framesOf, textOf } from '../../test/sessions/session-client.ts';
import { useSessionFixture } from '../../test/sessions/session-fixture.ts';

const FAILURES = [
  ['a rejected API key', 'refused', { status: 401 }, 'llm_unauthorized'],
  ['a lasting rate limit', 'limited', { status: 429, retry_after: '0' }, 'llm_rate_limited'],
  ['a lasting overload', 'overloaded', { status: 529 }, 'llm_overloaded'],
  ['a request that the vendor rejects', 'bad', { status: 400 }, 'llm_refused'],
  ['garbage', 'garbled', { fault: 'garbage' }, 'llm_bad_response'],
  ['a truncated stream', 'cut', { text: ['Once ', 'upon'], fault: 'cut' }, 'llm_bad_response'],
] as const;

/** Claude Code does not report whether a stream was truncated or never began. */
const CUT_CODE: Readonly<Record<Agent, string>> = {
  deictic: 'llm_bad_response',
  'claude-code': 'llm_unavailable',
  codex: 'llm_bad_response',
};

const fixture = useSessionFixture({
  rules: [
    { when: { user: 'well again' }, reply: { text: 'All is well.' } },
    // In reverse order, because an agent may repeat an unanswered prompt together with the next one.
    ...FAILURES.map(([, word, reply]) => ({ when: { user: `be ${word}` }, reply })).reverse(),
    { when: { user: 'only once' }, times: 1, reply: { status: 529 } },
    { when: { user: 'only once' }, reply: { text: 'The second try.' } },
  ],
});

describe.concurrent('a failing upstream', () => {
  test(
    'ends the task with an error that names the cause, and the session continues',
    {
      timeout: 1_200_000,
    },
    () =>
      forEachAgent(async (agent) => {
        const client = await fixture().attach(await fixture().create(agent));
        for (const [failure, word, , code] of FAILURES) {
          const turn = await client.task(`Now be ${word}`, word);
          expect(
            framesOf(turn, 'error').map((frame) => frame.code),
            failure,
          ).toEqual([word === 'cut' ? CUT_CODE[agent] : code]);
          expect(framesOf(turn, 'task_completed'), failure).toMatchObject([
            { id: word, status: 'failed' },
          ]);
          expect(JSON.stringify(turn)).not.toContain(fixture().key);
        }
        expect(textOf(await client.task('Be well again', 'well'))).toBe('All is well.');
      }),
  );

  test('is retried', async () => {
    const client = await fixture().attach(await fixture().create('deictic'));
    const turn = await client.task('Fail only once', 'once');
    expect(textOf(turn)).toBe('The second try.');
    expect(framesOf(turn, 'error')).toEqual([]);
  });
});
