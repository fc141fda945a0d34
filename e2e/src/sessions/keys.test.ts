import { readFile } from 'node:fs/promises';
import type { Agent, SessionAccess } from '@svc/contract';
import { vmPid } from '@svc/service-driver';
import { beforeAll, describe, expect, test } from 'vitest';
import { textsInMemory } from '../../test/machine/process-memory.ts';
import { forEachAgent, resultOf } from '../../test/sessions/for-each-agent.ts';
import { searchGuest } from '../../test/sessions/search-guest.ts';
import { type SessionClient, textOf } from '../../test/sessions/session-client.ts';
import { MODELS, useSessionFixture } from '../../test/sessions/session-fixture.ts';
import { shared } from '../../test/shared-service.ts';

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

const TIMEOUT = { timeout: 1_200_000 };

describe('with every agent', () => {
  /** A session of an agent, a client of it, the key of its model, and a value of its bundles that the guest sees. */
  interface Started {
    readonly agent: Agent;
    readonly session: SessionAccess;
    readonly client: SessionClient;
    readonly bundles: { readonly llm: string; readonly more: string };
    key: string;
    visible: string;
  }
  let sessions: Started[];

  beforeAll(async () => {
    const { account, models, key } = fixture();
    sessions = await forEachAgent(async (agent) => {
      const { vendor, model } = MODELS[agent];
      const bundles = { llm: `llm-${agent}`, more: `more-${agent}` };
      await account.client.secrets.create(bundles.llm, {
        LLM_API_KEY: key,
        LLM_BASE_URL: models.url,
        LLM_MODEL: model,
      });
      const visible = `visible-${agent}-4711`;
      await account.client.secrets.create(bundles.more, { GREETING: visible });
      const secrets = Object.values(bundles);
      const session = await fixture().create(agent, { secrets, llm: { vendor } });
      const client = await fixture().attach(session);
      return { agent, session, client, bundles, key, visible };
    });
  }, TIMEOUT.timeout);

  async function forEachSession(work: (started: Started) => Promise<void>): Promise<void> {
    await forEachAgent((agent) => work(resultOf(sessions, agent)));
  }

  test(
    'a bundle rotated during a stream: the stream continues, and the next task has the new key, model and endpoint',
    TIMEOUT,
    () =>
      forEachSession(async (started) => {
        const { agent, session, client, bundles, visible } = started;
        const { account, models, key } = fixture();
        const { vendor, model } = MODELS[agent];
        client.connection.exec('echo "<$GREETING>"', { id: 'before' });
        expect((await client.until('stdout')).data).toBe(`<${visible}>\n`);

        const turn = client.task(`Tell it slowly, ${agent}`, 'slow');
        await client.until('text_delta');
        await account.client.secrets.rotate(bundles.llm, {
          LLM_API_KEY: NEW_KEY,
          LLM_BASE_URL: `${models.url}/rotated`,
          LLM_MODEL: NEW_MODELS[agent],
        });
        started.key = NEW_KEY;
        started.visible = `visible-again-${agent}-4711`;
        await account.client.secrets.rotate(bundles.more, { GREETING: started.visible });
        const first = await client.until('system', (frame) => frame.event === 'config_update');
        expect(first).toMatchObject({ keys: expect.arrayContaining(['LLM_API_KEY']) });
        await client.until(
          'system',
          (frame) => frame.event === 'config_update' && frame.keys.includes('GREETING'),
        );
        expect(textOf(await turn)).toBe(WORDS.join(''));
        expect(lastWith(`slowly, ${agent}`)).toMatchObject({ key, model });

        await client.task(`Once more, ${agent}, quickly`, 'next');
        expect(lastWith(`more, ${agent}, quickly`)).toEqual({
          key: NEW_KEY,
          model: NEW_MODELS[agent],
          path: expect.stringMatching(/^\/rotated\//),
        });
        const { llm: shown } = await fixture().sessions.get(session.chat_session_id);
        expect(shown).toEqual({ vendor, model: NEW_MODELS[agent] });
        client.connection.exec('echo "<$GREETING>"', { id: 'after' });
        await client.until('stdout', ({ data }) => data === `<${started.visible}>\n`);
      }),
  );

  test(
    'no key is anywhere in the guest, nor in what the customer or the operator reads',
    TIMEOUT,
    () =>
      forEachSession(async ({ agent, session, client, key, visible }) => {
        const { account, models } = fixture();
        const keys = [fixture().key, NEW_KEY];
        const before = models.requests.length;
        await client.task(`Say hello, ${agent}`, 'hello');
        client.connection.exec('sleep 3600');
        await client.task(`Say hello again, ${agent}`, 'again');
        const requests = models.requests.slice(before).map(({ headers, body }) => ({
          isOwn: JSON.stringify(body).includes(`hello, ${agent}`),
          headers: JSON.stringify(headers),
        }));
        expect(requests.some(({ isOwn }) => isOwn)).toBe(true);
        for (const { isOwn, headers } of requests) {
          const expected = isOwn ? [key] : keys;
          expect(expected.some((one) => headers.includes(one))).toBe(true);
        }

        const vmId = await fixture().sandboxOf(session);
        // This precedes the search in the guest, because the command line of the search contains the keys.
        const qemu = await vmPid(shared.address.dataDir, vmId);
        expect(await textsInMemory(qemu, [visible, ...keys])).toEqual([visible]);

        // The other value of the bundles is in the environment of processes, which shows that the search works.
        const found = await searchGuest(account.client, vmId, [visible, ...keys]);
        expect(found[visible]?.join('\n')).toMatch(/environ/);
        for (const one of keys) expect(found[one]).toEqual([]);

        const { content } = await account.client.sandboxes.logs(vmId, { bytes: 1_048_576 });
        const log = await readFile(`${shared.address.dataDir}/service.log`, 'utf8');
        for (const text of [JSON.stringify(client.frames), content, log]) {
          for (const one of keys) expect(text).not.toContain(one);
        }
      }),
  );
});

test('a deleted bundle does not affect a running session, but its resume is refused', async () => {
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
