import type { ErrorCode } from '@svc/contract';
import { describe, expect, test } from 'vitest';
import { expectProblem } from '../../test/assertions.ts';
import { useOwnerRequests } from '../../test/owner-requests.ts';

const { sandbox, post } = useOwnerRequests();
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
    ['with null as template', { template: null }, 'validation_failed'],
    ['with a number as template', { template: 1 }, 'validation_failed'],
    ['with an unknown template', { template: 'windows' }, 'unknown_template'],
    ['with an empty template', { template: '' }, 'unknown_template'],
    ['with an unknown agent', { ...agent, agent: 'hal' }, 'unknown_agent'],
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
    ['with a variable that is not a string', { env_vars: { A: 1 } }, 'validation_failed'],
    ['with = in a variable name', { env_vars: { 'A=B': '1' } }, 'validation_failed'],
    ['with NUL in a variable', { env_vars: { A: 'a\0b' } }, 'validation_failed'],
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
      'with an IPv4-mapped persistence_url',
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
    ['with an idle timeout of 0', { idle_timeout_seconds: 0 }, 'validation_failed'],
    ['with a negative lifetime', { max_lifetime_seconds: -1 }, 'validation_failed'],
    ['with a fraction of a second', { idle_timeout_seconds: 1.5 }, 'validation_failed'],
    ['with a number as text', { idle_timeout_seconds: '60' }, 'validation_failed'],
    ['with 0 CPUs', { vcpu: 0 }, 'validation_failed'],
    ['with 9 CPUs', { vcpu: 9 }, 'validation_failed'],
    ['with too little memory', { memory_mib: 255 }, 'validation_failed'],
    ['with too much memory', { memory_mib: 16_385 }, 'validation_failed'],
    ['with too little disk', { disk_mib: 1 }, 'validation_failed'],
    ['with a list as metadata', { metadata: [] }, 'validation_failed'],
    ['with a task over the limit', { task: 'x'.repeat(900_001) }, 'validation_failed'],
  ])('%s', async (_case, fields, code) => {
    expectProblem(await create(fields), code);
  });

  test('with an invalid idempotency key', async () => {
    for (const key of ['', 'x'.repeat(256), 'with space', 'naïve']) {
      const headers = { 'idempotency-key': Buffer.from(key).toString('latin1') };
      expectProblem(
        await post('/v1/sandboxes', { template: 'standard' }, headers),
        'idempotency_key_invalid',
      );
    }
  });

  test('and names the invalid fields', async () => {
    const answer = await create({ vcpu: 'two', memory_mib: 1 });
    const { errors } = expectProblem(answer, 'validation_failed');
    expect(errors?.map(({ path }) => path).sort()).toEqual(['/memory_mib', '/vcpu']);
  });

  test('and no refused create leaves a sandbox', async () => {
    const list = await sandbox().account.client.sandboxes.list();
    const alive = list.sandboxes.filter(({ state }) => state !== 'destroyed');
    expect(alive.map(({ vm_id }) => vm_id)).toEqual([sandbox().id]);
  });
});
