import type { Agent } from '@svc/contract';
import { expect, test } from 'vitest';
import { forEachAgent } from '../../test/sessions/for-each-agent.ts';
import { textOf } from '../../test/sessions/session-client.ts';
import { MODELS, useSessionFixture } from '../../test/sessions/session-fixture.ts';

const WORDS = Array.from({ length: 30 }, (_, index) => `w${index} `);
const NEW_KEY = 'sk-rotated-0123456789';
const NEW_MODELS: Readonly<Record<Agent, string>> = {
  deictic: 'claude-opus-4-5',
  'claude-code': 'claude-opus-4-5',
  codex: 'gpt-5.2',
};

const fixture = useSessionFixture({
  rules: [{ when: { user: 'slowly' }, reply: { text: WORDS, chunk_delay_ms: 200 } }],
});

/** The last request whose conversation contains `text`. */
function lastWith(text: string) {
  const { requests } = fixture().models;
  const last = requests.findLast(({ body }) => JSON.stringify(body).includes(text));
  const { 'x-api-key': key, authorization } = last?.headers ?? {};
  return {
    key: typeof key === 'string' ? key : authorization?.replace(/^Bearer /, ''),
    model: (last?.body as { readonly model?: string } | undefined)?.model,
    path: last?.path,
  };
}

test.concurrent(
  'a bundle rotated during a stream: the stream continues, and the next task has the new key, model and endpoint',
  {
    timeout: 900_000,
  },
  () =>
    forEachAgent(async (agent) => {
      const { account, models } = fixture();
      const { vendor, model } = MODELS[agent];
      const [llm, more] = [`llm-${agent}`, `more-${agent}`];
      await account.client.secrets.create(llm, {
        LLM_API_KEY: fixture().key,
        LLM_BASE_URL: models.url,
        LLM_MODEL: model,
      });
      await account.client.secrets.create(more, { GREETING: 'hello' });
      const session = await fixture().create(agent, { secrets: [llm, more], llm: { vendor } });
      const client = await fixture().attach(session);
      client.connection.exec('echo "<$GREETING>"', { id: 'before' });
      expect((await client.until('stdout')).data).toBe('<hello>\n');

      const turn = client.task(`Tell it slowly, ${agent}`, 'slow');
      await client.until('text_delta');
      await account.client.secrets.rotate(llm, {
        LLM_API_KEY: NEW_KEY,
        LLM_BASE_URL: `${models.url}/rotated`,
        LLM_MODEL: NEW_MODELS[agent],
      });
      await account.client.secrets.rotate(more, { GREETING: 'good evening' });
      const first = await client.until('system', (frame) => frame.event === 'config_update');
      expect(first).toMatchObject({ keys: expect.arrayContaining(['LLM_API_KEY']) });
      await client.until(
        'system',
        (frame) => frame.event === 'config_update' && frame.keys.includes('GREETING'),
      );
      expect(textOf(await turn)).toBe(WORDS.join(''));
      expect(lastWith(`slowly, ${agent}`)).toMatchObject({ key: fixture().key, model });

      await client.task(`Once more, ${agent}, quickly`, 'next');
      expect(lastWith(`more, ${agent}, quickly`)).toEqual({
        key: NEW_KEY,
        model: NEW_MODELS[agent],
        path: expect.stringMatching(/^\/rotated\//),
      });
      const { llm: shown } = await fixture().sessions.get(session.chat_session_id);
      expect(shown).toEqual({ vendor, model: NEW_MODELS[agent] });
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
