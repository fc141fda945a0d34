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

const TIMEOUT = { timeout: 900_000 };

test(
  'agent state is stored at the customer’s endpoint, and another sandbox continues from it',
  TIMEOUT,
  () =>
    forEachAgent(async (agent) => {
      const { account, models, key } = fixture();
      const options = {
        persistence_url: `${endpoint.url}/states/${agent}`,
        persistence_auth_header: `Custom secret-of-${agent}`,
        session_id: `${agent}-1`,
      };
      const first = await runOneShot(fixture(), agent, `Please remember fox-of-${agent}`, options);
      expect(first).toMatchObject({ agent_status: 'completed' });
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
      const bodies = models.requests.map(({ body }) => JSON.stringify(body));
      const asked = bodies.findLast((body) => body.includes(`what did I say, ${agent}`));
      expect(asked).toContain(`fox-of-${agent}`);
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
