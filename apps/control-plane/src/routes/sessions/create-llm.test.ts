import { describe, expect, test } from 'vitest';
import { type Refusal, useSessionWorld } from '../../../test/session-world.ts';

const world = useSessionWorld();

describe('a session', () => {
  test('uses the endpoint and model of the request before those of its bundles', async () => {
    await world().create({ secrets: ['llm', 'base', 'model'] });
    expect(world().placed.placement.agent).toMatchObject({ model: 'model-of-bundle' });
    expect((await world().secretsOf(world().placed.vm_id)).llm).toMatchObject({
      base_url: 'https://llm.internal:8443/v1',
    });
    await world().create({
      secrets: ['llm', 'base', 'model'],
      llm: { vendor: 'openai', model: 'mine', base_url: 'https://llm.internal:8443/mine' },
    });
    expect(world().placed.placement.agent).toMatchObject({ vendor: 'openai', model: 'mine' });
    expect((await world().secretsOf(world().placed.vm_id)).llm).toMatchObject({
      base_url: 'https://llm.internal:8443/mine',
    });
  });

  test.each([
    ['anthropic', 'claude-sonnet-5-5'],
    ['openai', 'gpt-5.5'],
    ['google', 'gemini-of-the-operator'],
    ['deepseek', 'deepseek-v4-pro'],
  ])('of %s without a model takes the default, %s', async (vendor, model) => {
    expect((await world().create({ llm: { vendor } })).status).toBe(201);
    expect(world().placed.placement.agent).toMatchObject({ vendor, model });
  });

  test.each([
    ['claude-code', 'anthropic', 'claude-x', 1024],
    ['codex', 'openai', 'o3', 1024],
    ['deictic', 'deepseek', 'anything/at:all', 512],
  ])('with %s accepts its models and uses its size', async (kind, vendor, model, memory) => {
    const { status } = await world().create({ agent: { kind }, llm: { vendor, model } });
    expect(status).toBe(201);
    expect(world().placed.placement).toMatchObject({
      agent: { kind, vendor, model },
      size: { memory_mib: memory },
    });
  });
});

describe('refusals', () => {
  test.each<Refusal>([
    ['a model with a space', { llm: { vendor: 'openai', model: 'a b' } }, 400, 'llm_model_invalid'],
    ['an empty model', { llm: { vendor: 'openai', model: '' } }, 400, 'llm_model_invalid'],
    [
      'a foreign model for claude-code',
      { agent: { kind: 'claude-code' }, llm: { vendor: 'anthropic', model: 'gpt-5' } },
      400,
      'model_not_allowed',
    ],
    [
      'a foreign model for codex',
      { agent: { kind: 'codex' }, llm: { vendor: 'openai', model: 'claude-x' } },
      400,
      'model_not_allowed',
    ],
    [
      'claude-code with the default of another vendor',
      { agent: { kind: 'claude-code' }, llm: { vendor: 'openai' } },
      400,
      'model_not_allowed',
    ],
    [
      'claude-code at a vendor whose API it does not speak',
      { agent: { kind: 'claude-code' }, llm: { vendor: 'google', model: 'claude-x' } },
      400,
      'model_not_allowed',
    ],
    [
      'a base URL without TLS',
      { llm: { vendor: 'openai', base_url: 'http://8.8.8.8/' } },
      400,
      'llm_base_url_refused',
    ],
    [
      'a base URL in the house',
      { llm: { vendor: 'openai', base_url: 'https://127.0.0.1/' } },
      400,
      'llm_base_url_refused',
    ],
    [
      'a base URL with a password',
      { llm: { vendor: 'openai', base_url: 'https://a:b@llm.internal:8443/' } },
      400,
      'llm_base_url_refused',
    ],
    ['a bundle whose model is none', { secrets: ['llm', 'bad-model'] }, 400, 'llm_model_invalid'],
  ])('%s', (_, changes, status, code) => world().expectRefused(changes, status, code));
});
