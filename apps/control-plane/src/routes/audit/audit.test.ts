import { afterAll, beforeAll, expect, test } from 'vitest';
import { Harness } from '../../../test/harness.ts';

let harness: Harness;

beforeAll(async () => {
  harness = await Harness.start();
});
afterAll(() => harness?.[Symbol.asyncDispose]());

const audit = (key: string, query = '') => harness.call('GET', `/v1/audit${query}`, { key });
const eventsOf = (body: Record<string, unknown>) =>
  (body.entries as { event: string }[]).map((entry) => entry.event);

test('shows only the events of the caller’s account, newest first', async () => {
  const { token, key, body, email } = await harness.signUp();
  await harness.signUp();
  await harness.call('POST', '/v1/auth/verify-otp', { json: { email, code: '000000' } });
  const made = await harness.call('POST', '/v1/tenants/me/api-keys', { key });
  await harness.call('DELETE', `/v1/api-keys/${made.body.key_id}`, { key: token });
  const answer = await audit(token);
  expect(eventsOf(answer.body)).toEqual([
    'api_key_revoked',
    'api_key_created',
    'login_failed',
    'api_key_created',
    'login_succeeded',
  ]);
  expect(answer.body.entries).toMatchObject([
    { details: { key_id: made.body.key_id, by: 'account' } },
    { details: { key_id: made.body.key_id, by: body.key_id } },
    { details: { email } },
    { details: { key_id: body.key_id } },
    {},
  ]);
  expect(answer.body.next_cursor).toBeUndefined();
});

test('pages join without gaps or repeats while records are added', async () => {
  const { token, key } = await harness.signUp();
  const create = () => harness.call('POST', '/v1/tenants/me/api-keys', { key });
  for (let made = 0; made < 5; made += 1) await create();
  const seen: string[] = [];
  let cursor: unknown;
  do {
    const { body } = await audit(
      token,
      `?limit=2${cursor === undefined ? '' : `&cursor=${cursor}`}`,
    );
    seen.push(...(body.entries as { id: string }[]).map((entry) => entry.id));
    cursor = body.next_cursor;
    await create();
  } while (cursor !== undefined);
  expect(seen).toHaveLength(7);
  expect(new Set(seen).size).toBe(7);
  expect(seen.map(Number)).toEqual(seen.map(Number).sort((a, b) => b - a));
});

test.each([
  ['limit=0'],
  ['limit=101'],
  ['limit=x'],
  ['cursor=0'],
  ['cursor=x'],
  ['cursor='],
  ['cursor=99999999999999999999'],
])('%s is 400', async (query) => {
  const { token } = await harness.signUp();
  expect(await audit(token, `?${query}`)).toMatchObject({
    status: 400,
    body: { code: 'validation_failed' },
  });
});

test('every event is also in the log', async () => {
  const { tenantId } = await harness.signUp();
  const lines = harness.logLines
    .filter((line) => line.includes(tenantId))
    .map((line) => JSON.parse(line));
  expect(lines).toContainEqual(expect.objectContaining({ audit: 'login_succeeded' }));
  expect(lines).toContainEqual(expect.objectContaining({ audit: 'api_key_created' }));
});
