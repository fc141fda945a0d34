import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { Harness } from '../test/harness.ts';

let harness: Harness;
let key: string;

beforeAll(async () => {
  harness = await Harness.start({ SVC_LIMIT_SANDBOXES_PER_TENANT: '1' });
  key = (await harness.signUp()).key;
});
afterAll(() => harness?.[Symbol.asyncDispose]());
beforeEach(() => harness.reset());

const call = (method: string, path: string, json?: unknown) =>
  harness.call(method, `/v1/${path}`, { key, ...(json === undefined ? {} : { json }) });
const create = () => call('POST', 'sandboxes', { template: 'standard' });

test.each<[string, string, () => Promise<unknown>]>([
  [
    'sandbox_limit_reached',
    'a create at the limit of the account',
    async () => {
      await harness.addWorker('w1');
      await harness.create(key);
      return create();
    },
  ],
  ['no_workers', 'a create without workers', create],
  ['no_workers', 'a list without workers', () => call('GET', 'sandboxes')],
  [
    'no_workers',
    'a create whose only worker does not answer',
    async () => {
      const worker = await harness.addWorker('w1');
      await worker.stop();
      return create();
    },
  ],
  [
    'workspace_unavailable',
    'a create whose workspace cannot be loaded',
    async () => {
      const worker = await harness.addWorker('w1');
      worker.failures.set('create', 'workspace_unavailable');
      return create();
    },
  ],
  [
    'workspace_unavailable',
    'a pause whose workspace cannot be saved',
    async () => {
      const worker = await harness.addWorker('w1');
      const vmId = await harness.create(key);
      worker.failures.set('pause', 'workspace_unavailable');
      return call('POST', `sandboxes/${vmId}/pause`);
    },
  ],
])('%s names the time: %s', async (code, _, ask) => {
  const answer = (await ask()) as Awaited<ReturnType<typeof call>>;
  expect(answer.body).toMatchObject({ code });
  expect(answer.headers.get('retry-after')).toBe('5');
});
