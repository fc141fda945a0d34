import { Readable } from 'node:stream';
import { formatEvent } from '@svc/service-kit';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Answer, Harness } from '../test/harness.ts';
import type { ControlPlane } from './index.ts';

const EXIT = formatEvent('exit', { exit_code: 0, duration_ms: 1, truncated: false });
const WITH_AGENT = { agent: 'claude-code', llm_key: 'k' };
let harness: Harness;
let planes: ControlPlane[];

beforeAll(async () => {
  harness = await Harness.start({
    SVC_LIMIT_API_KEYS_PER_TENANT: '3',
    SVC_LIMIT_SESSIONS_PER_TENANT: '3',
    SVC_LIMIT_OPERATIONS_PER_TENANT: '2',
    SVC_LIMIT_CALLS_PER_TENANT: '2',
  });
  planes = [harness.plane, await harness.startAnother()];
});
afterAll(async () => {
  await planes?.[1]?.close();
  await harness?.[Symbol.asyncDispose]();
});
beforeEach(() => harness.reset());

/** The answers to as many calls at once, on all control planes. */
function atOnce(
  count: number,
  call: (plane: ControlPlane | undefined, index: number) => Promise<Answer>,
): Promise<Answer[]> {
  return Promise.all(
    Array.from({ length: count }, (_, index) => call(planes[index % planes.length], index)),
  );
}
const codesOf = (answers: readonly Answer[]) =>
  answers.filter(({ status }) => status >= 300).map(({ status, body }) => `${status} ${body.code}`);

describe('API keys', () => {
  const create = (token: string, plane?: ControlPlane) =>
    harness.call('POST', '/v1/api-keys', { key: token, json: {}, ...(plane && { plane }) });

  test('are as many as the limit allows, however many are created at once', async () => {
    const { key, token } = await harness.signUp();
    const answers = await atOnce(10, (plane, index) =>
      index % 3 === 0
        ? harness.call('POST', '/v1/tenants/me/api-keys', {
            key,
            json: {},
            ...(plane && { plane }),
          })
        : create(token, plane),
    );
    expect(codesOf(answers)).toEqual(Array(8).fill('409 api_key_limit_reached'));
    const { body } = await harness.call('GET', '/v1/tenants/me/api-keys', { key });
    expect(body.keys).toHaveLength(3);
  });

  test('that are revoked do not count', async () => {
    const { token } = await harness.signUp();
    const ids = [await create(token), await create(token)].map(({ body }) => body.key_id);
    expect((await create(token)).status).toBe(409);
    await harness.call('DELETE', `/v1/api-keys/${ids[0]}`, { key: token });
    expect((await create(token)).status).toBe(201);
  });

  test('at the limit, verify is refused and verify-otp still signs in', async () => {
    const { email, token } = await harness.signUp();
    await create(token);
    await create(token);
    const redeem = async (path: string) => {
      await harness.call('POST', '/v1/tenants', { json: { email } });
      const code = await harness.lastCode(email);
      return harness.call('POST', path, { json: { email, code } });
    };
    expect(await redeem('/v1/tenants/verify')).toMatchObject({
      status: 409,
      body: { code: 'api_key_limit_reached' },
    });
    expect(await redeem('/v1/auth/verify-otp')).toMatchObject({ status: 200 });
    // Without a code nobody learns of the limit.
    const guess = await harness.call('POST', '/v1/tenants/verify', { json: { email, code: 'no' } });
    expect(guess).toMatchObject({ status: 401, body: { code: 'otp_invalid' } });
  });
});

describe('sessions', () => {
  let key: string;
  const json = {
    agent: { kind: 'deictic' },
    app: { id: 'a' },
    template: 'standard',
    llm: { vendor: 'anthropic' },
    secrets: ['llm'],
    user_id: 'u',
  };
  const create = (plane?: ControlPlane) =>
    harness.call('POST', '/v1/sessions', { key, json, ...(plane && { plane }) });

  beforeEach(async () => {
    key = (await harness.signUp()).key;
    await harness.addBundle(key, 'llm', { LLM_API_KEY: 'k' });
    await harness.addWorker('w1');
  });

  test('are as many as the limit allows, however many are started at once', async () => {
    const answers = await atOnce(9, create);
    expect(codesOf(answers)).toEqual(Array(6).fill('409 session_limit_reached'));
    const { body } = await harness.call('GET', '/v1/sessions', { key });
    expect(body).toMatchObject({ total: 3 });
    const other = (await harness.signUp()).key;
    await harness.addBundle(other, 'llm', { LLM_API_KEY: 'k' });
    expect((await harness.call('POST', '/v1/sessions', { key: other, json })).status).toBe(201);
  });

  test('count until they are erased, also once they have ended; a resume adds none', async () => {
    const ids = [await create(), await create(), await create()].map(
      ({ body }) => body.chat_session_id,
    );
    await harness.call('DELETE', `/v1/sessions/${ids[0]}`, { key });
    expect(await create()).toMatchObject({ status: 409, body: { code: 'session_limit_reached' } });
    const resumed = await harness.call('POST', '/v1/sessions/resume', {
      key,
      json: { chat_session_id: ids[0] },
    });
    expect(resumed.status).toBe(200);
    await harness.call('DELETE', `/v1/sessions/${ids[1]}?erase=true`, { key });
    expect((await create()).status).toBe(201);
    expect((await create()).status).toBe(409);
  });
});

describe('commands and transfers', () => {
  test('run as many at once as the limit allows; the others are told to come back', async () => {
    const { key } = await harness.signUp();
    const worker = await harness.addWorker('w1');
    const [one, two] = [await harness.create(key), await harness.create(key)];
    const leave = new AbortController();
    const exec = (id: string, command: string, signal?: AbortSignal) =>
      harness.call('POST', `/v1/sandboxes/${id}/exec`, {
        key,
        json: { command },
        ...(signal && { signal }),
      });
    const hanging = [one, two].map((id) => exec(id, 'hang', leave.signal).catch(() => undefined));
    await expect.poll(() => worker.busy).toBe(2);
    const busy = { status: 429, body: { code: 'too_many_operations' } };
    const refused = await exec(one, 'true');
    expect(refused).toMatchObject(busy);
    expect(refused.headers.get('retry-after')).toBe('1');
    const files = `/v1/sandboxes/${two}/files?path=/f`;
    expect(await harness.call('GET', files, { key })).toMatchObject(busy);
    const upload = { key, raw: 'x', headers: { 'content-type': 'application/octet-stream' } };
    expect(await harness.call('POST', files, upload)).toMatchObject(busy);
    const stranger = (await harness.signUp()).key;
    const id = await harness.create(stranger);
    const other = { key: stranger, json: { command: 'true' } };
    expect((await harness.call('POST', `/v1/sandboxes/${id}/exec`, other)).status).toBe(200);
    leave.abort();
    await Promise.all(hanging);
    // The control plane notices that the callers have left.
    await expect.poll(async () => (await exec(one, 'true')).status).toBe(200);
    // An answer that nobody reads keeps its slot, and so its memory is bounded.
    const large = formatEvent('stdout', { data: 'x'.repeat(1024 * 1024) }).repeat(9) + EXIT;
    worker.lies.set('exec', () => ({ type: 'text/event-stream', body: large }));
    const unread = await Promise.all(
      [one, two].map((id) =>
        fetch(`${harness.plane.url}/v1/sandboxes/${id}/exec`, {
          method: 'POST',
          headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
          body: JSON.stringify({ command: 'cat /dev/zero' }),
        }),
      ),
    );
    worker.lies.delete('exec');
    expect(unread.map(({ status }) => status)).toEqual([200, 200]);
    expect(await exec(one, 'true')).toMatchObject(busy);
    const [left, read] = unread;
    await left?.body?.cancel();
    expect(await read?.json()).toMatchObject({ exit_code: 0, truncated: false });
    await expect.poll(async () => (await exec(one, 'true')).status).toBe(200);
    // A transfer gives its slot back when it ends, and so does one that fails.
    for (let time = 0; time < 5; time += 1) {
      expect((await harness.call('POST', files, upload)).status).toBe(200);
      expect((await harness.call('GET', files, { key })).text).toBe('x');
      const missing = `/v1/sandboxes/${two}/files?path=/none`;
      expect((await harness.call('GET', missing, { key })).status).toBe(404);
    }
  });
});

describe('other calls to workers', () => {
  test('are as many at once as the limit allows; creations and deletions always pass', async () => {
    const { key } = await harness.signUp();
    const worker = await harness.addWorker('w1');
    const ids = [await harness.create(key), await harness.create(key, WITH_AGENT)];
    const [one, two] = ids;
    const call = (method: string, path: string, owner = key) =>
      harness.call(method, `/v1/sandboxes${path}`, { key: owner });
    // A worker that takes its time.
    const begun: Readable[] = [];
    worker.lies.set('pause', () => {
      const body = new Readable({ read: () => undefined });
      begun.push(body);
      return { body };
    });
    const hanging = ids.map((id) => call('POST', `/${id}/pause`));
    await expect.poll(() => begun.length).toBe(2);
    const refused = [
      ['POST', `/${one}/pause`],
      ['POST', `/${one}/resume`],
      ['POST', `/${one}/cancel`],
      ['GET', `/${two}/logs`],
      ['GET', ''],
    ] as const;
    for (const [method, path] of refused) {
      const answer = await call(method, path);
      expect(answer, path).toMatchObject({ status: 429, body: { code: 'too_many_operations' } });
      expect(answer.headers.get('retry-after')).toBe('1');
    }
    expect((await call('GET', `/${one}`)).status).toBe(200);
    expect((await harness.create(key)).startsWith('vm_')).toBe(true);
    const command = { key, json: { command: 'true' } };
    const exec = await harness.call('POST', `/v1/sandboxes/${one}/exec`, command);
    expect(exec.status).toBe(200);
    expect((await call('GET', '', (await harness.signUp()).key)).status).toBe(200);
    expect((await call('DELETE', `/${one}`)).status).toBe(200);
    for (const body of begun) body.push(null);
    expect((await Promise.all(hanging)).map(({ status }) => status)).toEqual([502, 502]);
    expect((await call('GET', '')).status).toBe(200);
  });
});
