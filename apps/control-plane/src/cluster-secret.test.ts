import { INTERNAL_PREFIX, SESSION_TOKEN_HEADER } from '@svc/contract';
import { deriveControlPlaneKey, Secret } from '@svc/service-kit';
import { ComponentDouble } from '@svc/worker-double';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { CLUSTER_SECRET, Harness } from '../test/harness.ts';
import type { ControlPlane } from './control-plane.ts';
import { ClusterSecrets } from './crypto/cluster-secrets.ts';

const NEXT_SECRET = new Secret('the next secret of at least 32 characters');

let harness: Harness;
/** Has the old secret and accepts the new one. */
let before: ControlPlane;
/** Has the new secret and accepts the old one. */
let after: ControlPlane;
let account: Awaited<ReturnType<Harness['signUp']>>;

beforeAll(async () => {
  harness = await Harness.start();
  const startWithOld = async () => {
    const secrets = await ClusterSecrets.open([CLUSTER_SECRET]);
    return { plane: await harness.startAnother({}, undefined, secrets), secrets };
  };
  const [old, changed] = [await startWithOld(), await startWithOld()];
  [before, after] = [old.plane, changed.plane];
  // Neither is restarted.
  for (const { secrets } of [old, changed]) {
    expect(await secrets.replace([CLUSTER_SECRET, NEXT_SECRET])).toBe(true);
  }
  expect(await changed.secrets.replace([NEXT_SECRET, CLUSTER_SECRET])).toBe(true);
  account = await harness.signUp();
  await harness.addBundle(account.key, 'llm', { LLM_API_KEY: 'k' });
});
afterAll(async () => {
  await before?.close();
  await after?.close();
  await harness?.[Symbol.asyncDispose]();
});
beforeEach(() => harness.reset());

/** Both orders: what one control plane makes, and the other one checks. */
const orders = [
  ['before', 'after', () => ({ makes: before, checks: after })],
  ['after', 'before', () => ({ makes: after, checks: before })],
] as const;

describe.each(orders)(
  'while the cluster secret changes, what is made %s is accepted %s',
  (...order) => {
    const [, , planes] = order;

    test('one-time codes, and the tokens of accounts', async () => {
      const { makes, checks } = planes();
      const email = `${crypto.randomUUID()}@example.com`;
      await harness.call('POST', '/v1/tenants', { json: { email }, plane: makes });
      const verified = await harness.call('POST', '/v1/tenants/verify', {
        json: { email, code: await harness.lastCode(email) },
        plane: checks,
      });
      expect(verified.status).toBe(200);
      const key = String(verified.body.token);
      expect((await harness.call('GET', '/v1/tenants/me', { key, plane: makes })).status).toBe(200);
    });

    test('the tokens of sessions', async () => {
      const { makes, checks } = planes();
      await harness.addWorker('w1');
      const session = await harness.startSession(account.key);
      const access = await harness.call('POST', `/v1/sandboxes/${session.vmId}/connect`, {
        key: account.key,
        plane: makes,
      });
      const runtime = new ComponentDouble('runtime', 'r1', CLUSTER_SECRET);
      const route = await runtime.ask(checks.internalUrl, 'GET', `/sessions/${session.id}`, {
        headers: { [SESSION_TOKEN_HEADER]: String(access.body.jwt) },
      });
      expect(route.status).toBe(200);
    });

    test('the URLs of files', async () => {
      const { makes, checks } = planes();
      const path = '/v1/workspaces/app/set/files/note.txt';
      const upload = await harness.call('PUT', path, { key: account.token, plane: makes });
      expect(upload.status).toBe(200);
      const url = new URL(String(upload.body.upload_url ?? upload.body.url));
      const answer = await fetch(`${checks.url}${url.pathname}${url.search}`, {
        method: 'PUT',
        body: 'hello',
      });
      expect(answer.status, await answer.text()).toBeLessThan(300);
    });

    test('the enrolment of components', async () => {
      const { makes, checks } = planes();
      const secret = makes === before ? CLUSTER_SECRET : NEXT_SECRET;
      const worker = new ComponentDouble('worker', crypto.randomUUID(), secret);
      const answer = await worker.enrol(checks.internalUrl);
      expect(answer.status).toBe(204);
    });

    test('the calls of workers, which read the keys of both', async () => {
      const { makes, checks } = planes();
      const answer = await fetch(`${checks.internalUrl}${INTERNAL_PREFIX}/keys`);
      const { keys } = (await answer.json()) as { keys: { kid: string }[] };
      const signer = await deriveControlPlaneKey(makes === before ? CLUSTER_SECRET : NEXT_SECRET);
      expect(keys.map(({ kid }) => kid)).toContain(signer.id);
      expect(keys).toHaveLength(2);
    });
  },
);
