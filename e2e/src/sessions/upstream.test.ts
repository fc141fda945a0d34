import { describe, expect, test } from 'vitest';
import { framesOf, textOf } from './talk.ts';
import { useSessionWorld } from './world.ts';

const FAILURES = [
  ['a refused key', 'refused', { status: 401 }, 'llm_unauthorized'],
  ['a rate limit that stays', 'limited', { status: 429, retry_after: '0' }, 'llm_rate_limited'],
  ['an overload that stays', 'overloaded', { status: 529 }, 'llm_overloaded'],
  ['a request that the vendor refuses', 'bad', { status: 400 }, 'llm_refused'],
  ['garbage', 'garbled', { fault: 'garbage' }, 'llm_bad_response'],
  [
    'a stream that ends early',
    'cut',
    { text: ['Once ', 'upon'], fault: 'cut' },
    'llm_bad_response',
  ],
] as const;

const world = useSessionWorld({
  rules: [
    ...FAILURES.map(([, word, reply]) => ({ when: { user: `be ${word}` }, reply })),
    { when: { user: 'well again' }, reply: { text: 'All is well.' } },
    { when: { user: 'only once' }, times: 1, reply: { status: 529 } },
    { when: { user: 'only once' }, reply: { text: 'The second try.' } },
  ],
});

describe('an upstream that fails', () => {
  test('ends the task with an error that says what it was; the session lives', {
    timeout: 600_000,
  }, async () => {
    const talk = await world().attach(await world().create('deictic'));
    for (const [what, word, , code] of FAILURES) {
      const turn = await talk.task(`Now be ${word}`, word);
      expect(
        framesOf(turn, 'error').map((frame) => frame.code),
        what,
      ).toEqual([code]);
      expect(framesOf(turn, 'task_completed'), what).toMatchObject([
        { id: word, status: 'failed' },
      ]);
      expect(JSON.stringify(turn)).not.toContain(world().key);
    }
    expect(textOf(await talk.task('Be well again', 'well'))).toBe('All is well.');
  });

  test('once is tried again', async () => {
    const talk = await world().attach(await world().create('deictic'));
    const turn = await talk.task('Fail only once', 'once');
    expect(textOf(turn)).toBe('The second try.');
    expect(framesOf(turn, 'error')).toEqual([]);
  });
});
