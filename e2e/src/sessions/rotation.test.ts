import { expect, test } from 'vitest';
import { forEachAgent } from '../../test/sessions/for-each-agent.ts';
import { textOf } from '../../test/sessions/session-client.ts';
import { useSessionFixture } from '../../test/sessions/session-fixture.ts';

const WORDS = Array.from({ length: 30 }, (_, index) => `w${index} `);
const NEW_KEY = 'sk-rotated-0123456789';

const fixture = useSessionFixture({
  rules: [{ when: { user: 'slowly' }, reply: { text: WORDS, chunk_delay_ms: 200 } }],
});

/** The API key in the last request whose conversation contains `text`. */
function keyIn(text: string): string | undefined {
  const { requests } = fixture().models;
  const last = requests.findLast(({ body }) => JSON.stringify(body).includes(text));
  const { 'x-api-key': key, authorization } = last?.headers ?? {};
  return typeof key === 'string' ? key : authorization?.replace(/^Bearer /, '');
}

test.concurrent(
  'a bundle rotated during a stream: the stream continues, and the next request has the new key',
  {
    timeout: 900_000,
  },
  () =>
    forEachAgent(async (agent) => {
      const { account, models } = fixture();
      const [llm, more] = [`llm-${agent}`, `more-${agent}`];
      await account.client.secrets.create(llm, {
        LLM_API_KEY: fixture().key,
        LLM_BASE_URL: models.url,
      });
      await account.client.secrets.create(more, { GREETING: 'hello' });
      const session = await fixture().create(agent, { secrets: [llm, more] });
      const client = await fixture().attach(session);
      client.connection.exec('echo "<$GREETING>"', { id: 'before' });
      expect((await client.until('stdout')).data).toBe('<hello>\n');

      const turn = client.task(`Tell it slowly, ${agent}`, 'slow');
      await client.until('text_delta');
      await account.client.secrets.rotate(llm, { LLM_API_KEY: NEW_KEY, LLM_BASE_URL: models.url });
      await account.client.secrets.rotate(more, { GREETING: 'good evening' });
      const first = await client.until('system', (frame) => frame.event === 'config_update');
      expect(first).toMatchObject({ keys: expect.arrayContaining(['LLM_API_KEY']) });
      await client.until(
        'system',
        (frame) => frame.event === 'config_update' && frame.keys.includes('GREETING'),
      );
      expect(textOf(await turn)).toBe(WORDS.join(''));
      expect(keyIn(`slowly, ${agent}`)).toBe(fixture().key);

      await client.task(`Once more, ${agent}, quickly`, 'next');
      expect(keyIn(`more, ${agent}, quickly`)).toBe(NEW_KEY);
      client.connection.exec('echo "<$GREETING>"', { id: 'after' });
      await client.until('stdout', ({ data }) => data === '<good evening>\n');
    }),
);

test.concurrent('a deleted bundle does not affect a running session, but its resume is refused', async () => {
  const { account } = fixture();
  await account.client.secrets.create('short-lived', { EXTRA: 'x' });
  const session = await fixture().create('deictic', { secrets: ['llm', 'short-lived'] });
  const client = await fixture().attach(session);
  await account.client.secrets.delete('short-lived');
  expect(textOf(await client.task('Still there?', 'one'))).toContain('Still there?');
  await expect(
    fixture().sessions.resume({ chat_session_id: session.chat_session_id }),
  ).rejects.toMatchObject({ status: 502, code: 'secret_bundle_not_found_at_resume' });
});
