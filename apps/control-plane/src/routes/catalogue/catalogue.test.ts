import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Harness } from '../../../test/harness.ts';
import { readCatalogue } from '../../catalogue/catalogue.ts';

let harness: Harness;

beforeAll(async () => {
  harness = await Harness.start({ SVC_LIMIT_TEMPLATES_PER_MINUTE: '5' });
});
afterAll(() => harness?.[Symbol.asyncDispose]());

const list = (key: string, plane = harness.plane) =>
  harness.call('GET', '/v1/templates', { key, plane });

test('lists the catalogue and finds each entry by its app_id', async () => {
  const { key } = await harness.signUp();
  const { status, body } = await list(key);
  expect(status).toBe(200);
  const templates = body.templates as { app_id: string }[];
  expect(templates.map((entry) => entry.app_id)).toEqual(['deictic']);
  for (const entry of templates) {
    const one = await harness.call('GET', `/v1/templates/${entry.app_id}`, { key });
    expect(one).toMatchObject({ status: 200, body: entry });
  }
});

test('lists the builds that the images of live workers carry', async () => {
  const { key } = await harness.signUp();
  const versions = async () => {
    const { body } = await harness.call('GET', '/v1/templates/deictic', { key });
    return body.versions;
  };
  expect(await versions()).toEqual({ deictic: [], 'claude-code': [], codex: [] });
  const codex = { kind: 'codex', version: '0.9.0' };
  await harness.addWorker('a', (worker) => {
    worker.agents = [{ kind: 'deictic', version: '1' }, codex];
  });
  await harness.addWorker('b', (worker) => {
    worker.agents = [
      { kind: 'of tomorrow', version: '1' },
      codex,
      { kind: 'codex', version: '0.10.0' },
    ];
  });
  expect(await versions()).toEqual({
    deictic: ['1'],
    'claude-code': [],
    codex: ['0.9.0', '0.10.0'],
  });
  await harness.sql.query(
    `update workers set heartbeat_at = now() - interval '1 hour' where worker_id = 'b'`,
  );
  expect(await versions()).toEqual({ deictic: ['1'], 'claude-code': [], codex: ['0.9.0'] });
  await harness.reset();
});

test.each([['nope'], ['Deictic'], ['%00'], ['%ED%A0%80x'], ['x'.repeat(2000)]])(
  'app %s is 404 and audited, or not a valid URL',
  async (appId) => {
    const { key, token } = await harness.signUp();
    const answer = await harness.call('GET', `/v1/templates/${appId}`, { key });
    if (answer.body.code === 'invalid_url') return;
    expect(answer).toMatchObject({ status: 404, body: { code: 'template_not_found' } });
    const { body } = await harness.call('GET', '/v1/audit?limit=1', { key: token });
    expect(body.entries).toMatchObject([{ event: 'template_not_found' }]);
  },
);

test('every answer states the remaining quota, and beyond it is 429', async () => {
  const { key } = await harness.signUp();
  for (const left of [4, 3, 2, 1, 0]) {
    const { status, headers } = await list(key);
    expect(status).toBe(200);
    expect(headers.get('ratelimit-policy')).toBe('"templates";q=5;w=60');
    expect(headers.get('ratelimit')).toMatch(new RegExp(`^"templates";r=${left};t=\\d+$`));
  }
  const refused = await list(key);
  expect(refused).toMatchObject({ status: 429, body: { code: 'rate_limited' } });
  const wait = Number(refused.headers.get('retry-after'));
  expect(wait).toBeGreaterThan(0);
  expect(wait).toBeLessThanOrEqual(60);
  expect(refused.headers.get('ratelimit')).toBe(`"templates";r=0;t=${wait}`);
  expect((await harness.call('GET', '/v1/templates/deictic', { key })).status).toBe(429);
});

test('the limit covers all control planes, counts each tenant separately, and resets with its window', async () => {
  const [first, second] = [await harness.signUp(), await harness.signUp()];
  const plane = await harness.startAnother();
  try {
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, index) => list(first.key, index % 2 ? plane : harness.plane)),
    );
    expect(answers.filter((answer) => answer.status === 200)).toHaveLength(5);
    expect((await list(second.key)).status).toBe(200);
    await harness.sql.query(
      'update request_budgets set window_ends_at = now() where tenant_id = $1',
      [first.tenantId],
    );
    expect((await list(first.key, plane)).status).toBe(200);
  } finally {
    await plane.close();
  }
});

test('rejects a catalogue that sessions could not use', async () => {
  const file = async (entries: unknown) => {
    const path = join(harness.dataDir, 'catalogue.json');
    await writeFile(path, JSON.stringify(entries));
    return path;
  };
  const set = { set_id: 'default', name: 'Default', tools: [] };
  const entry = { app_id: 'deictic', name: 'D', description: '', capability_sets: [set] };
  for (const bad of [
    [],
    [{ ...entry, app_id: 'someone' }],
    [{ ...entry, capability_sets: [] }],
    [{ ...entry, capability_sets: [{ ...set, set_id: 'other' }] }],
    [{ ...entry, capability_sets: [set, set] }],
    [{ ...entry, capability_sets: [{ ...set, tools: ['bash'] }] }],
  ]) {
    await expect(readCatalogue(await file(bad))).rejects.toThrow();
  }
  expect(await readCatalogue()).toHaveLength(1);
});
