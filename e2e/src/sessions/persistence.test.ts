import { until } from '@svc/service-driver';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { forEachAgent } from '../../test/sessions/for-each-agent.ts';
import {
  type PersistenceEndpoint,
  startPersistenceEndpoint,
} from '../../test/sessions/persistence-endpoint.ts';
import { runOneShot } from '../../test/sessions/run-one-shot.ts';
import { useSessionFixture } from '../../test/sessions/session-fixture.ts';

const fixture = useSessionFixture({
  rules: [
    { when: { user: 'what did I say' }, reply: { text: 'You said it.' } },
    { when: { user: 'remember (\\S+)' }, reply: { text: 'Noted: $1.' } },
  ],
});

let endpoint: PersistenceEndpoint;
beforeAll(async () => {
  endpoint = await startPersistenceEndpoint();
});
afterAll(() => endpoint.close());

/** The requests to the model whose conversation contains `text`. */
function requestsWith(text: string) {
  return fixture()
    .models.requests.map(({ headers, body }) => ({ headers, text: JSON.stringify(body) }))
    .filter((request) => request.text.includes(text));
}

const TIMEOUT = { timeout: 900_000 };

test(
  'every agent runs its task, stores its state at the customer’s endpoint and exits, and another sandbox continues from it',
  TIMEOUT,
  () =>
    forEachAgent(async (agent) => {
      const { account, key } = fixture();
      const options = {
        persistence_url: `${endpoint.url}/states/${agent}`,
        persistence_auth_header: `Custom secret-of-${agent}`,
        session_id: `${agent}-1`,
      };
      const first = await runOneShot(fixture(), agent, `Please remember fox-of-${agent}`, options);
      const { content } = await account.client.sandboxes.logs(first.vm_id, { lines: 100 });
      expect(first, content).toMatchObject({
        agent_status: 'completed',
        agent_exit_code: 0,
        state: 'running',
      });
      expect(content).toContain(`Noted: fox-of-${agent}.`);
      const [asked] = requestsWith(`remember fox-of-${agent}`);
      expect(JSON.stringify(asked?.headers)).toContain(key);
      await account.client.sandboxes.delete(first.vm_id);
      const ofAgent = () => endpoint.requests.filter(({ path }) => path === `/states/${agent}`);
      const put = await until('the state has been sent', async () =>
        ofAgent().find(({ method }) => method === 'PUT'),
      );
      expect(put.body).toMatchObject({
        version: 1,
        session_id: `${agent}-1`,
        vm_id: first.vm_id,
        agent,
        saved_at: expect.any(String),
        state: expect.any(String),
      });

      const second = await runOneShot(fixture(), agent, `So what did I say, ${agent}?`, options);
      expect(second).toMatchObject({ agent_status: 'completed' });
      expect(requestsWith(`what did I say, ${agent}`).at(-1)?.text).toContain(`fox-of-${agent}`);
      for (const { headers, body } of ofAgent()) {
        expect(headers.authorization).toBe(`Custom secret-of-${agent}`);
        expect(JSON.stringify(body ?? {})).not.toContain(key);
      }
      await account.client.sandboxes.delete(second.vm_id);
    }),
);

test('an endpoint that is neither public nor allowed is rejected', async () => {
  const { sandboxes } = fixture().account.client;
  const create = sandboxes.create({
    template: 'standard',
    agent: 'deictic',
    llm_key: fixture().key,
    task: 'nothing',
    persistence_url: 'https://127.0.0.1:4443/state',
  });
  await expect(create).rejects.toMatchObject({ status: 400 });
});
