import { describe, expect, test } from 'vitest';
import { type Refusal, useSessionWorld } from '../../../test/session-world.ts';

const world = useSessionWorld();

describe('an app', () => {
  test('of the catalogue is used unchanged, with every set', async () => {
    const { body } = await world().harness.call('GET', '/v1/templates', {
      key: world().account.key,
    });
    const entries = body.templates as {
      app_id: string;
      name: string;
      capability_sets: { set_id: string; name: string; tools: string[] }[];
    }[];
    expect(entries.length).toBeGreaterThan(0);
    for (const entry of entries) {
      const plain = await world().create({
        agent: { kind: entry.app_id },
        app: { id: entry.app_id },
      });
      expect(plain.status, plain.text).toBe(201);
      for (const set of entry.capability_sets) {
        const app = { id: entry.app_id, set_id: set.set_id };
        const answer = await world().create({ agent: { kind: entry.app_id }, app });
        expect(answer.status, answer.text).toBe(201);
        expect(world().placed.agent_input?.app).toEqual({
          name: entry.name,
          capability_sets: [{ name: set.name, agents: [{ name: entry.app_id, tools: set.tools }] }],
        });
      }
    }
  });

  test('without a description leaves the agent every capability', async () => {
    await world().create({ app: { id: 'mine', set_id: 'any' } });
    expect(world().placed.agent_input?.app).toBeUndefined();
  });

  const agents = [{ name: 'a', capability_name: 'c', tools: ['bash'] }, { name: 'b' }];

  test.each([
    ['by id', { default: { name: 'Both', agents }, x: { tools: [] } }, 'Both'],
    ['in a list', [{ set_id: 'x' }, { set_id: 'default', agents }], 'default'],
    ['in a list by name', [{ name: 'default', agents }], 'default'],
  ])('may bring its agents %s', async (_, capability_sets, name) => {
    const { status, text } = await world().create({ app: { id: 'mine', capability_sets } });
    expect(status, text).toBe(201);
    expect(world().placed.agent_input?.app).toEqual({
      name: 'mine',
      capability_sets: [{ name, agents }],
    });
  });

  test('may limit only the tools of its one agent', async () => {
    await world().create({
      app: { id: 'mine', capability_sets: { default: { tools: ['bash'] } } },
    });
    expect(world().placed.agent_input?.app).toEqual({
      name: 'mine',
      capability_sets: [{ name: 'default', agents: [{ name: 'mine', tools: ['bash'] }] }],
    });
  });
});

describe('refusals', () => {
  test.each<Refusal>([
    [
      'a set that the app lacks',
      { app: { id: 'mine', capability_sets: { x: {} } } },
      400,
      'capability_set_unknown',
    ],
    [
      'a set that the catalogue lacks',
      { app: { id: 'deictic', set_id: 'none' } },
      400,
      'capability_set_unknown',
    ],
    [
      'capability sets of no known shape',
      { app: { id: 'mine', capability_sets: {} } },
      400,
      'app_json_invalid',
    ],
  ])('%s', (_, changes, status, code) => world().expectRefused(changes, status, code));
});
