import { randomUUID } from 'node:crypto';
import { type ErrorCode, LIMITS } from '@svc/contract';
import { describe, expect, test } from 'vitest';
import type { RawRequest } from '../support/raw-http.ts';
import { expectProblem } from '../support/schema.ts';
import { shared } from '../support/shared-service.ts';
import { useSandbox } from '../support/use-sandbox.ts';

const sandbox = useSandbox();

/** Sends a request with the account's key; `{id}` in the target is its sandbox. */
const send = (request: RawRequest) =>
  shared.raw({
    apiKey: sandbox().account.apiKey,
    ...request,
    target: request.target.replace('{id}', sandbox().id),
  });
const post = (target: string, body: unknown, headers: Record<string, string> = {}) =>
  send({ method: 'POST', target, body, headers });
const create = (fields: unknown) =>
  post('/v1/sandboxes', typeof fields === 'object' ? { template: 'standard', ...fields } : fields);

const nested = {
  name: 'app',
  capability_sets: [{ name: 'set', agents: [{ name: 'a' }, { name: 'b' }] }],
};
const agent = { agent: 'claude-code', llm_key: 'k', model: 'claude-x' };

describe('a create is refused', () => {
  test.each<[string, unknown, ErrorCode]>([
    ['without a template', { template: undefined }, 'validation_failed'],
    ['with a template that is null', { template: null }, 'validation_failed'],
    ['with a template that is a number', { template: 1 }, 'validation_failed'],
    ['with an unknown template', { template: 'windows' }, 'unknown_template'],
    ['with an empty template', { template: '' }, 'unknown_template'],
    ['with a template that has no image here', { template: 'canvas' }, 'template_not_available'],
    ['with an unknown agent', { ...agent, agent: 'hal' }, 'unknown_agent'],
    ['with an agent, which this installation has none of', agent, 'agent_not_available'],
    ['with an agent without llm_key', { agent: 'codex' }, 'llm_key_required'],
    ['with deictic without a model', { agent: 'deictic', llm_key: 'k' }, 'model_required'],
    ['with a model of another vendor', { ...agent, model: 'gpt-5' }, 'model_not_allowed'],
    ['with codex and a claude model', { ...agent, agent: 'codex' }, 'model_not_allowed'],
    ['with wire version 3', { wire_version: 3 }, 'wire_version_invalid'],
    ['with a reserved variable', { env_vars: { LLM_KEY: 'x' } }, 'reserved_env_var'],
    [
      'with another reserved variable',
      { env_vars: { SVC_PERSISTENCE_URL: 'x' } },
      'reserved_env_var',
    ],
    ['with a variable that is no string', { env_vars: { A: 1 } }, 'validation_failed'],
    ['with a variable name with =', { env_vars: { 'A=B': '1' } }, 'validation_failed'],
    ['with a variable that holds NUL', { env_vars: { A: 'a\0b' } }, 'validation_failed'],
    ['with a flat app_json', { app_json: { name: 'app', agents: [] } }, 'app_json_invalid'],
    [
      'with an empty app_json',
      { app_json: { name: 'app', capability_sets: [] } },
      'app_json_invalid',
    ],
    [
      'with several agents and wire version 1',
      { app_json: nested, wire_version: 1 },
      'multi_agent_needs_wire_version_2',
    ],
    [
      'with a plain http persistence_url',
      { persistence_url: 'http://example.com/' },
      'persistence_url_refused',
    ],
    [
      'with a private persistence_url',
      { persistence_url: 'https://10.0.0.1/' },
      'persistence_url_refused',
    ],
    [
      'with a loopback persistence_url',
      { persistence_url: 'https://localhost/' },
      'persistence_url_refused',
    ],
    [
      'with a metadata persistence_url',
      { persistence_url: 'https://169.254.169.254/' },
      'persistence_url_refused',
    ],
    [
      'with a mapped persistence_url',
      { persistence_url: 'https://[::ffff:127.0.0.1]/' },
      'persistence_url_refused',
    ],
    [
      'with credentials in persistence_url',
      { persistence_url: 'https://a:b@example.com/' },
      'persistence_url_refused',
    ],
    [
      'with a workspace without its scope',
      { workspace_enabled: true },
      'workspace_fields_required',
    ],
    [
      'with a workspace, which there are none of',
      { workspace_enabled: true, app_id: 'a', capset_id: 'b' },
      'workspaces_not_available',
    ],
    ['with an idle timeout of 0', { idle_timeout_seconds: 0 }, 'validation_failed'],
    ['with a negative lifetime', { max_lifetime_seconds: -1 }, 'validation_failed'],
    ['with half a second', { idle_timeout_seconds: 1.5 }, 'validation_failed'],
    ['with a number as text', { idle_timeout_seconds: '60' }, 'validation_failed'],
    ['with 0 processors', { vcpu: 0 }, 'validation_failed'],
    ['with 9 processors', { vcpu: 9 }, 'validation_failed'],
    ['with too little memory', { memory_mib: 255 }, 'validation_failed'],
    ['with too much memory', { memory_mib: 16_385 }, 'validation_failed'],
    ['with too little disk', { disk_mib: 1 }, 'validation_failed'],
    ['with metadata that is a list', { metadata: [] }, 'validation_failed'],
    ['with a task that is too long', { task: 'x'.repeat(900_001) }, 'validation_failed'],
  ])('%s', async (_case, fields, code) => {
    expectProblem(await create(fields), code);
  });

  test('with an idempotency key that is none', async () => {
    for (const key of ['', 'x'.repeat(256), 'with space', 'naïve']) {
      const headers = { 'idempotency-key': Buffer.from(key).toString('latin1') };
      expectProblem(
        await post('/v1/sandboxes', { template: 'standard' }, headers),
        'idempotency_key_invalid',
      );
    }
  });

  test('and says which fields are at fault', async () => {
    const answer = await create({ vcpu: 'two', memory_mib: 1 });
    const { errors } = expectProblem(answer, 'validation_failed');
    expect(errors?.map(({ path }) => path).sort()).toEqual(['/memory_mib', '/vcpu']);
  });

  test('and none of all these left a sandbox', async () => {
    const list = await sandbox().account.client.sandboxes.list();
    const alive = list.sandboxes.filter(({ state }) => state !== 'destroyed');
    expect(alive.map(({ vm_id }) => vm_id)).toEqual([sandbox().id]);
  });
});

describe('an exec is refused', () => {
  test.each<[string, unknown, ErrorCode]>([
    ['without a command', {}, 'command_required'],
    ['with an empty command', { command: '' }, 'command_required'],
    ['with a command that is null', { command: null }, 'command_required'],
    ['with a command that is a list', { command: ['ls'] }, 'command_required'],
    ['with NUL in the command', { command: 'echo \0' }, 'command_required'],
    ['with a command that is too long', { command: 'x'.repeat(120_001) }, 'command_required'],
    ['with a relative cwd', { command: 'ls', cwd: 'tmp' }, 'validation_failed'],
    ['with NUL in cwd', { command: 'ls', cwd: '/a\0' }, 'validation_failed'],
    [
      'with a cwd that is too long',
      { command: 'ls', cwd: `/${'x'.repeat(5000)}` },
      'validation_failed',
    ],
    ['with env that is a list', { command: 'ls', env: ['A=1'] }, 'validation_failed'],
    ['with a bad name in env', { command: 'ls', env: { 'A B': '1' } }, 'validation_failed'],
    ['with a timeout of 0', { command: 'ls', timeout_seconds: 0 }, 'validation_failed'],
    ['with a timeout below 0', { command: 'ls', timeout_seconds: -1 }, 'validation_failed'],
    [
      'with a timeout beyond any life',
      { command: 'ls', timeout_seconds: 1e9 },
      'validation_failed',
    ],
  ])('%s', async (_case, body, code) => {
    expectProblem(await post('/v1/sandboxes/{id}/exec', body), code);
  });
});

describe('paths of files', () => {
  const paths: readonly (readonly [string, ErrorCode])[] = [
    ['', 'path_required'],
    ['?path=', 'path_required'],
    ['?path=/a&path=/b', 'path_required'],
    ['?path=relative/file', 'path_not_absolute'],
    ['?path=./file', 'path_not_absolute'],
    ['?path=/../etc/passwd', 'path_traversal'],
    ['?path=/tmp/..', 'path_traversal'],
    ['?path=/tmp/../etc/passwd', 'path_traversal'],
    ['?path=/tmp/%2e%2e/etc/passwd', 'path_traversal'],
    ['?path=%2Ftmp%2F..%2Fetc', 'path_traversal'],
    ['?path=/tmp/%252e%252e/etc/passwd', 'path_traversal'],
    ['?path=/tmp/%25252e%25252e/etc/passwd', 'path_traversal'],
    ['?path=/tmp/%c0%ae%c0%ae/etc/passwd', 'invalid_url'],
    ['?path=/tmp/%25c0%25ae%25c0%25ae/etc', 'path_traversal'],
    ['?path=/tmp/..%5Cetc', 'path_traversal'],
    ['?path=/tmp%5C..%5Cetc', 'path_traversal'],
    ['?path=/tmp/nul%00byte', 'invalid_path'],
    ['?path=/tmp/nul%2500byte', 'invalid_path'],
    [`?path=/${'x'.repeat(256)}`, 'invalid_path'],
    [`?path=${'/x'.repeat(2049)}`, 'invalid_path'],
    ['?path=/tmp/%ff%fe', 'invalid_url'],
    ['?path=/tmp/%zz', 'invalid_url'],
  ];

  test.each(paths)('GET %s', async (query, code) => {
    expectProblem(await send({ target: `/v1/sandboxes/{id}/files${query}` }), code);
  });

  test.each(paths)('POST %s', async (query, code) => {
    const headers = { 'content-type': 'application/octet-stream' };
    expectProblem(await post(`/v1/sandboxes/{id}/files${query}`, 'x', headers), code);
  });
});

describe('bodies', () => {
  test.each(['{', 'nul', '{"template":"standard"', '{"a":1}}', '{"a":NaN}', "{'a':1}"])(
    'malformed JSON is invalid_json: %j',
    async (body) => {
      expectProblem(await post('/v1/sandboxes', body), 'invalid_json');
    },
  );

  test('no body is no request', async () => {
    expectProblem(await post('/v1/sandboxes', ''), 'validation_failed');
  });

  test.each([null, true, 1, 'text', []])('%j is valid JSON and no request', async (body) => {
    expectProblem(await post('/v1/sandboxes', JSON.stringify(body)), 'validation_failed');
  });

  test('bytes that are no UTF-8 are refused or read as text, never more', async () => {
    const body = Buffer.concat([
      Buffer.from('{"template":"'),
      Buffer.from([0xff, 0xfe]),
      Buffer.from('"}'),
    ]);
    const answer = await post('/v1/sandboxes', body);
    expect([400, 501]).toContain(answer.status);
  });

  test('a prototype in a body is only a field', async () => {
    const body =
      '{"template":"no-such","__proto__":{"template":"standard"},"constructor":{"prototype":{"x":1}}}';
    const { code } = (await post('/v1/sandboxes', body)).json<{ code: string }>();
    expect(['invalid_json', 'unknown_template']).toContain(code);
  });

  test('nesting without end does no harm', async () => {
    const depth = 100_000;
    const body = `{"template":"standard","metadata":${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}}`;
    expectProblem(await post('/v1/sandboxes', body), 'invalid_json');
  });

  test.each(['text/plain', 'application/xml', 'application/x-www-form-urlencoded', 'json', ''])(
    'the media type %j is unsupported',
    async (type) => {
      const headers = { 'content-type': type };
      expectProblem(
        await post('/v1/sandboxes', '{"template":"standard"}', headers),
        'unsupported_media_type',
      );
    },
  );

  test.each([
    '/v1/sandboxes',
    '/v1/sandboxes/{id}/exec',
    '/v1/sandboxes/{id}/cancel',
    '/v1/tenants',
  ])('beyond 1 MiB is too large for %s, told or not', async (target) => {
    const body = Buffer.alloc(LIMITS.jsonBodyBytes + 1, 0x20);
    expectProblem(await post(target, body), 'payload_too_large');
    const claimed = { 'content-length': String(2 ** 40) };
    expectProblem(await post(target, '{', claimed), 'payload_too_large');
  });
});

describe('credentials', () => {
  const wrong = [
    undefined,
    '',
    'Basic abc',
    'Bearer',
    'Bearer ',
    'Bearer nonsense',
    `Bearer svc_${'0'.repeat(64)}`,
    `Bearer svc_live_${'0'.repeat(43)}`,
    'Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJ1c3JfMSJ9.',
  ];

  test.each(wrong)('%j opens nothing', async (authorization) => {
    const headers = authorization === undefined ? {} : { authorization };
    for (const [method, target] of [
      ['GET', '/v1/sandboxes'],
      ['POST', '/v1/sandboxes'],
      ['GET', `/v1/sandboxes/${sandbox().id}`],
      ['DELETE', `/v1/sandboxes/${sandbox().id}`],
      ['POST', `/v1/sandboxes/${sandbox().id}/exec`],
      ['GET', '/v1/tenants/me'],
    ] as const) {
      expectProblem(await shared.raw({ method, target, headers }), 'unauthorized');
    }
  });

  test('the account token reads the account and opens no sandbox', async () => {
    const { token } = sandbox().account;
    const me = await shared.raw({ target: '/v1/tenants/me', apiKey: token });
    expect(me.status).toBe(200);
    expectProblem(await shared.raw({ target: '/v1/sandboxes', apiKey: token }), 'unauthorized');
  });

  test('come before the body: nobody learns what is wrong with theirs without one', async () => {
    const answer = await shared.raw({ method: 'POST', target: '/v1/sandboxes', body: '{' });
    expectProblem(answer, 'unauthorized');
  });
});

describe('addresses', () => {
  test.each([
    '/',
    '/v1',
    '/v2/sandboxes',
    '/v1/sandbox',
    '/v1/sandboxes/x/ws',
    '/v1/sandboxes/x/exec/y',
    '//v1/sandboxes',
    '/V1/sandboxes',
    '/v1/sandboxes/../tenants/me',
  ])('%s is no route', async (target) => {
    expectProblem(await send({ target }), 'route_not_found');
  });

  test.each([
    ['PUT', '/v1/sandboxes', ['GET', 'HEAD', 'POST']],
    ['PATCH', '/v1/sandboxes/{id}', ['DELETE', 'GET', 'HEAD']],
    ['GET', '/v1/sandboxes/{id}/exec', ['POST']],
    ['DELETE', '/v1/sandboxes/{id}/files', ['GET', 'POST']],
    ['GET', '/v1/sandboxes/{id}/cancel', ['POST']],
    ['POST', '/v1/sandboxes/{id}/logs', ['GET', 'HEAD']],
    ['GET', '/v1/tenants', ['POST']],
  ])('%s %s is not allowed, and what is is named', async (method, target, allowed) => {
    const answer = await send({ method, target });
    expectProblem(answer, 'method_not_allowed');
    expect(answer.headers.allow?.split(', ').sort()).toEqual(allowed);
  });

  test.each(['/v1/sandboxes/%', '/v1/sandboxes/%zz', '/v1/sandboxes/%ff'])(
    '%s is no URL',
    async (target) => {
      expectProblem(await send({ target }), 'invalid_url');
    },
  );

  test('a header section that is too large is refused', async () => {
    const headers = { 'x-large': 'x'.repeat(100_000) };
    const answer = await send({ target: '/v1/sandboxes', headers });
    expect(answer.status).toBe(431);
    expect(answer.json()).toMatchObject({ code: 'headers_too_large' });
  });

  test('the caller’s request id is kept when it is sane, and replaced when not', async () => {
    const id = randomUUID();
    const kept = await send({ target: '/v1/sandboxes/none', headers: { 'x-request-id': id } });
    expect(kept.headers['x-request-id']).toBe(id);
    for (const insane of ['x'.repeat(1000), 'a b{}<script>']) {
      const answer = await send({
        target: '/v1/sandboxes/none',
        headers: { 'x-request-id': insane },
      });
      expect(answer.headers['x-request-id']).not.toBe(insane);
      expectProblem(answer, 'sandbox_not_found');
    }
  });
});

describe('sign-up', () => {
  test.each([
    undefined,
    null,
    '',
    'nobody',
    'a@b',
    '@example.com',
    'a b@example.com',
    7,
    ['a@example.com'],
    `${'x'.repeat(300)}@example.com`,
  ])('the address %j is none', async (email) => {
    expectProblem(
      await shared.raw({ method: 'POST', target: '/v1/tenants', body: { email } }),
      'email_invalid',
    );
  });

  test.each(['', '12345', '1234567', 'abcdef', '000000'])('the code %j is wrong', async (code) => {
    const body = { email: 'nobody@example.com', code };
    expectProblem(
      await shared.raw({ method: 'POST', target: '/v1/tenants/verify', body }),
      'otp_invalid',
    );
  });
});
