import { LIMITS, RESERVED_KEYS } from '@svc/contract';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Harness } from '../../../test/harness.ts';

const PATH = '/v1/tenants/me/secrets';

let harness: Harness;
let key: string;

beforeAll(async () => {
  harness = await Harness.start({ SVC_EGRESS_ALLOW_HOSTS: 'models.example:8443' });
  key = (await harness.signUp()).key;
});
afterAll(() => harness?.[Symbol.asyncDispose]());

let made = 0;
const newName = () => `bundle-${++made}`;
const create = (name: unknown, values: unknown, as = key) =>
  harness.call('POST', PATH, { key: as, json: { name, values } });
const rotate = (name: string, values: unknown, as = key) =>
  harness.call('PUT', `${PATH}/${name}`, { key: as, json: { values } });
const get = (name: string, as = key) => harness.call('GET', `${PATH}/${name}`, { key: as });
const remove = (name: string, as = key) => harness.call('DELETE', `${PATH}/${name}`, { key: as });
const keysNamed = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`KEY_${index}`, 'v']));

describe('the life of a bundle', () => {
  test('is created, read, rotated, listed and deleted without showing a value', async () => {
    const name = newName();
    const created = await create(name, { LLM_MODEL: 'canary-1', LLM_API_KEY: 'canary-2' });
    expect(created.status).toBe(201);
    expect(created.body).toEqual({
      name,
      key_names: ['LLM_API_KEY', 'LLM_MODEL'],
      created_at: expect.any(String),
    });
    expect((await get(name)).body).toEqual(created.body);
    const rotated = await rotate(name, { LLM_API_KEY: 'canary-3' });
    expect(rotated.status).toBe(200);
    expect(rotated.body).toEqual({
      name,
      key_names: ['LLM_API_KEY'],
      last_rotated_at: expect.any(String),
    });
    const shown = await get(name);
    expect(shown.body).toEqual({ ...rotated.body, created_at: created.body.created_at });
    const list = await harness.call('GET', PATH, { key });
    expect(list.body.bundles).toContainEqual(shown.body);
    for (const { text } of [created, rotated, shown, list]) expect(text).not.toContain('canary');
    expect(await remove(name)).toMatchObject({ status: 200, body: { status: 'deleted' } });
    for (const answer of [await get(name), await remove(name), await rotate(name, {})]) {
      expect(answer).toMatchObject({ status: 404, body: { code: 'bundle_not_found' } });
    }
  });

  test('a name is taken once', async () => {
    const name = newName();
    const answers = await Promise.all(Array.from({ length: 4 }, () => create(name, { A: '1' })));
    expect(answers.map((answer) => answer.status).sort()).toEqual([201, 409, 409, 409]);
    expect(answers.find((answer) => answer.status === 409)?.body.code).toBe('bundle_exists');
  });

  test('a tenant can neither read nor change the bundles of another', async () => {
    const other = (await harness.signUp()).key;
    const name = newName();
    await create(name, { A: '1' });
    for (const answer of [
      await get(name, other),
      await rotate(name, { A: '2' }, other),
      await remove(name, other),
    ]) {
      expect(answer).toMatchObject({ status: 404, body: { code: 'bundle_not_found' } });
    }
    expect((await harness.call('GET', PATH, { key: other })).body.bundles).toEqual([]);
    expect((await create(name, { A: '3' }, other)).status).toBe(201);
    expect((await get(name)).body.last_rotated_at).toBeUndefined();
  });

  test('every change is audited', async () => {
    const { key: as, token } = await harness.signUp();
    await create('mine', { A: '1' }, as);
    await rotate('mine', { B: '2' }, as);
    await remove('mine', as);
    const { body } = await harness.call('GET', '/v1/audit?limit=3', { key: token });
    expect(body.entries).toMatchObject([
      { event: 'secret_deleted', details: { name: 'mine' } },
      { event: 'secret_rotated', details: { name: 'mine', key_names: ['B'] } },
      { event: 'secret_created', details: { name: 'mine', key_names: ['A'] } },
    ]);
  });
});

describe('limits, at their edges', () => {
  test.each([['a'], ['0'], ['a-'], [`a${'-'.repeat(62)}`]])('accepts the name %j', async (name) => {
    expect((await create(name, {})).status).toBe(201);
    expect((await remove(name)).status).toBe(200);
  });

  test.each([
    [''],
    ['-a'],
    ['A'],
    ['a_b'],
    ['a b'],
    ['a\n'],
    ['é'],
    [`a${'b'.repeat(63)}`],
    [7],
    [null],
    [undefined],
  ])('name %j is 400', async (name) => {
    expect(await create(name, {})).toMatchObject({
      status: 400,
      body: { code: 'bundle_name_invalid' },
    });
  });

  test.each([
    ['bytes', 'x'.repeat(LIMITS.secretValueBytes), 'x'],
    ['characters of several bytes', 'é'.repeat(LIMITS.secretValueBytes / 2), 'x'],
    ['characters outside the basic plane', '😀'.repeat(LIMITS.secretValueBytes / 4), 'x'],
  ])('a value of exactly 64 KiB of %s passes, one byte more does not', async (_, most, more) => {
    const name = newName();
    expect((await create(name, { A: most })).status).toBe(201);
    const over = { status: 400, body: { code: 'secret_value_too_large' } };
    expect(await create(newName(), { A: most + more })).toMatchObject(over);
    expect(await rotate(name, { A: most + more })).toMatchObject(over);
    await remove(name);
  });

  test('accepts fifty keys and rejects fifty-one', async () => {
    const name = newName();
    expect((await create(name, keysNamed(50))).status).toBe(201);
    const over = { status: 400, body: { code: 'too_many_secret_keys' } };
    expect(await create(newName(), keysNamed(51))).toMatchObject(over);
    expect(await rotate(name, keysNamed(51))).toMatchObject(over);
    await remove(name);
  });

  test('accepts fifty bundles and answers 429 to the next, even concurrently', async () => {
    const { key: as } = await harness.signUp();
    const answers = await Promise.all(
      Array.from({ length: 55 }, (_, index) => create(`b${index}`, { A: '1' }, as)),
    );
    expect(answers.filter((answer) => answer.status === 201)).toHaveLength(50);
    for (const answer of answers.filter(({ status }) => status !== 201)) {
      expect(answer).toMatchObject({ status: 429, body: { code: 'bundle_quota_exceeded' } });
    }
    const list = await harness.call('GET', PATH, { key: as });
    const [first] = list.body.bundles as { name: string }[];
    expect((await create(first?.name, {}, as)).body.code).toBe('bundle_exists');
    expect((await remove(String(first?.name), as)).status).toBe(200);
    expect((await create('one-more', {}, as)).status).toBe(201);
  });

  test.each(RESERVED_KEYS.map((name) => [name]))('%s is reserved', async (reserved) => {
    expect(await create(newName(), { [reserved]: 'x' })).toMatchObject({
      status: 400,
      body: { code: 'reserved_secret_key', errors: [{ path: `/values/${reserved}` }] },
    });
  });

  test.each([[''], ['1A'], ['A-B'], ['A B'], ['A\0'], ['É'], ['A'.repeat(129)]])(
    'key %j is 400',
    async (name) => {
      expect(await create(newName(), { [name]: 'x' })).toMatchObject({
        status: 400,
        body: { code: 'secret_key_invalid' },
      });
    },
  );

  test.each([[7], [null], ['a\0b'], ['\ud800'], [{}], [[]]])('value %j is 400', async (value) => {
    const answer = await create(newName(), { A: value });
    expect(answer).toMatchObject({ status: 400, body: { code: 'validation_failed' } });
  });

  test('accepts a body of 4 MiB and answers 413 to a larger one', async () => {
    const body = (bytes: number) => {
      const json = JSON.stringify({ name: newName(), values: { A: 'x' }, pad: '' });
      return json.replace('"pad":""', `"pad":"${'x'.repeat(bytes - json.length)}"`);
    };
    const send = (bytes: number) =>
      harness.call('POST', PATH, {
        key,
        raw: body(bytes),
        headers: { 'content-type': 'application/json' },
      });
    expect((await send(LIMITS.secretBodyBytes)).status).toBe(201);
    expect(await send(LIMITS.secretBodyBytes + 1)).toMatchObject({
      status: 413,
      body: { code: 'payload_too_large' },
    });
  });

  test('stores the largest possible bundle', async () => {
    const values = Object.fromEntries(
      Array.from({ length: 50 }, (_, index) => [`KEY_${index}`, 'x'.repeat(65_536)]),
    );
    const name = newName();
    expect((await create(name, values)).status).toBe(201);
    expect((await get(name)).body.key_names).toHaveLength(50);
  });
});

describe('LLM_BASE_URL', () => {
  test.each([
    ['http://models.example:8443/v1'],
    ['https://user:pw@models.example:8443'],
    ['https://127.0.0.1/v1'],
    ['https://[::1]/v1'],
    ['https://169.254.169.254/latest'],
    ['https://10.0.0.1:8443'],
    ['https://1.1.1.1:22'],
    ['not a url'],
    [''],
  ])('%j is refused when it is written', async (url) => {
    const refused = { status: 400, body: { code: 'llm_base_url_refused' } };
    expect(await create(newName(), { LLM_BASE_URL: url })).toMatchObject(refused);
    const name = newName();
    await create(name, { LLM_API_KEY: 'k' });
    const answer = await rotate(name, { LLM_BASE_URL: url });
    expect(answer).toMatchObject(refused);
    if (url !== '') expect(answer.text).not.toContain(url);
  });

  test('accepts public addresses and hosts that the operator allows', async () => {
    for (const url of ['https://1.1.1.1/v1', 'https://models.example:8443/v1']) {
      expect((await create(newName(), { LLM_BASE_URL: url })).status).toBe(201);
    }
  });
});

test('no answer, log line, metric or database column contains a secret value', async () => {
  const { key: as, token } = await harness.signUp();
  const canary = `canary${crypto.randomUUID().replaceAll('-', '')}`;
  const texts = [
    await create('canary', { LLM_API_KEY: canary }, as),
    await rotate('canary', { LLM_API_KEY: canary, OTHER: `${canary}\n` }, as),
    await create('canary', { LLM_API_KEY: canary }, as),
    await create('other', { LLM_API_KEY: canary, TASK: canary }, as),
    await create('other', { LLM_API_KEY: canary, BIG: canary.repeat(3000) }, as),
    await create('other', { LLM_API_KEY: canary, LLM_BASE_URL: `https://${canary}@x` }, as),
    await create('Not A Name', { LLM_API_KEY: canary }, as),
    await harness.call('POST', PATH, {
      key: as,
      raw: `{"name":"x","values":{"A":"${canary}`,
      headers: { 'content-type': 'application/json' },
    }),
    await get('canary', as),
    await harness.call('GET', PATH, { key: as }),
    await harness.call('GET', '/v1/audit', { key: token }),
    await harness.call('GET', '/metrics'),
  ].map((answer) => answer.text);
  const places = [...texts, ...harness.logLines, await harness.dump()].join('\n');
  const hidden = [
    canary,
    Buffer.from(canary).toString('base64'),
    Buffer.from(canary).toString('hex'),
  ];
  for (const form of hidden) expect(places).not.toContain(form);
  expect(places).toContain('LLM_API_KEY');
  expect(harness.logLines.length).toBeGreaterThan(10);
});
