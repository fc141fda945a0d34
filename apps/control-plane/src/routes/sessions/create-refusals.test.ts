import { describe, expect, test } from 'vitest';
import { type Refusal, useSessionWorld } from '../../../test/session-world.ts';

const world = useSessionWorld();

describe('refusals', () => {
  test.each<Refusal>([
    ['no user_id', { user_id: undefined }, 400, 'validation_failed'],
    ['an empty user_id', { user_id: '' }, 400, 'validation_failed'],
    ['a long user_id', { user_id: 'x'.repeat(129) }, 400, 'validation_failed'],
    ['a user_id that is null', { user_id: null }, 400, 'validation_failed'],
    ['a user_id with NUL', { user_id: 'a\0' }, 400, 'validation_failed'],
    ['no agent', { agent: undefined }, 400, 'validation_failed'],
    ['no app', { app: undefined }, 400, 'validation_failed'],
    ['no llm', { llm: undefined }, 400, 'validation_failed'],
    ['an unknown vendor', { llm: { vendor: 'acme' } }, 400, 'validation_failed'],
    ['a ttl of nothing', { ttl_seconds: 0 }, 400, 'validation_failed'],
    ['a ttl in text', { ttl_seconds: '60' }, 400, 'validation_failed'],
    ['eleven bundles', { secrets: Array(11).fill('llm') }, 400, 'validation_failed'],
    ['an unknown agent', { agent: { kind: 'hal' } }, 400, 'session_agent_unknown'],
    ['no agent kind', { agent: {} }, 400, 'session_agent_unknown'],
    ['an unknown template', { template: 'windows' }, 400, 'session_template_unknown'],
    ['no template', { template: undefined }, 400, 'session_template_unknown'],
    ['a template for sandboxes only', { template: 'canvas' }, 400, 'session_template_unknown'],
  ])('%s', (_, changes, status, code) => world().expectRefused(changes, status, code));

  test('check the form, then the request itself, then its bundles', async () => {
    const bad = { template: 'windows', llm: { vendor: 'openai', base_url: 'http://x/' } };
    expect((await world().create({ ...bad, secrets: ['none'] })).body.code).toBe(
      'session_template_unknown',
    );
    expect((await world().create({ llm: bad.llm, secrets: ['none'] })).body.code).toBe(
      'llm_base_url_refused',
    );
    expect((await world().create({ secrets: ['none', 'llm', 'other-llm'] })).body.code).toBe(
      'bundle_not_found',
    );
  });

  test.each<[string, number, string]>([
    ['no_capacity', 409, 'no_capacity'],
    ['boot_failed', 500, 'boot_failed'],
    ['guest_unresponsive', 502, 'guest_unresponsive'],
  ] as const)('%s of the worker leaves no session behind', async (failure, status, code) => {
    world().worker.failures.set('create', failure as 'no_capacity');
    expect(await world().create()).toMatchObject({ status, body: { code } });
    expect(await world().count('sessions')).toBe(0);
    expect(await world().count('agent_secrets')).toBe(0);
  });

  test('answer 503 without workers', async () => {
    await world().harness.reset();
    expect(await world().create()).toMatchObject({ status: 503, body: { code: 'no_workers' } });
    expect(await world().count('sessions')).toBe(0);
  });
});
