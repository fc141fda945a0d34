import { agentTools } from '@svc/contract';
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

  const agents = [{ name: 'a', capability_name: 'c', tools: ['shell'] }, { name: 'b' }];

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
      app: { id: 'mine', capability_sets: { default: { tools: ['shell'] } } },
    });
    expect(world().placed.agent_input?.app).toEqual({
      name: 'mine',
      capability_sets: [{ name: 'default', agents: [{ name: 'mine', tools: ['shell'] }] }],
    });
  });

  test('of the catalogue has the tools of the template, which others refuse', async () => {
    const app = (tools: string[]) => ({ id: 'mine', capability_sets: { default: { tools } } });
    const refused = await world().create({ app: app(['browser_click']) });
    expect(refused).toMatchObject({ status: 400, body: { code: 'tool_not_available' } });
    expect(refused.text).toContain('browser_click');
    world().worker.templates = ['standard', 'browser'];
    await world().worker.register(world().harness.plane.url);
    const click = { template: 'browser', app: app(['browser_click']) };
    expect(await world().create(click)).toMatchObject({ status: 201 });
    await world().create({ template: 'browser', app: { id: 'deictic' } });
    expect(world().placed.agent_input?.app?.capability_sets[0]?.agents[0]?.tools).toEqual(
      agentTools('deictic', 'browser'),
    );
  });

  test('of the catalogue serves every agent', async () => {
    for (const [kind, llm] of [
      ['claude-code', { vendor: 'anthropic', model: 'claude-x' }],
      ['codex', { vendor: 'openai', model: 'gpt-5.5' }],
    ] as const) {
      const { status, text } = await world().create({
        agent: { kind },
        llm,
        app: { id: 'deictic' },
      });
      expect(status, text).toBe(201);
      expect(world().placed.agent_input?.app).toBeUndefined();
    }
  });

  test('limits agents without a list of their own to the tools of their set', async () => {
    const agents = [{ name: 'a', tools: ['shell'] }, { name: 'b' }, { name: 'c', tools: [] }];
    const capability_sets = { default: { tools: ['shell', 'fetch'], agents } };
    const { status, text } = await world().create({ app: { id: 'mine', capability_sets } });
    expect(status, text).toBe(201);
    expect(world().placed.agent_input?.app?.capability_sets[0]?.agents).toEqual([
      { name: 'a', tools: ['shell'] },
      { name: 'b', tools: ['shell', 'fetch'] },
      { name: 'c', tools: ['shell', 'fetch'] },
    ]);
  });

  test('keeps its limits at a resume', async () => {
    const app = { id: 'mine', capability_sets: { default: { tools: ['Read'] } } };
    const { body } = await world().create({ ...CLAUDE, app });
    const { agent_input: input } = world().placed;
    const resumed = await world().harness.call('POST', '/v1/sessions/resume', {
      key: world().account.key,
      json: { chat_session_id: body.chat_session_id },
    });
    expect(resumed.status, resumed.text).toBe(200);
    expect(world().placed.agent_input).toEqual(input);
    expect(JSON.stringify(input)).toContain('"tools":["Read"]');
  });
});

const CLAUDE = {
  agent: { kind: 'claude-code' },
  llm: { vendor: 'anthropic', model: 'claude-x' },
};
const CODEX = { agent: { kind: 'codex' }, llm: { vendor: 'openai', model: 'gpt-5.5' } };

describe('tools', () => {
  const mine = (set: object) => ({ app: { id: 'mine', capability_sets: { default: set } } });

  test.each([
    ['an unknown tool of deictic', mine({ tools: ['shell', 'bash'] }), '"bash"'],
    ['a tool of another agent', { ...CLAUDE, ...mine({ tools: ['shell'] }) }, '"shell"'],
    ['a tool that the template lacks', mine({ tools: ['screenshot'] }), '"screenshot"'],
    ['an empty name', mine({ tools: [''] }), '""'],
    [
      'an unknown tool of one of several agents',
      mine({ agents: [{ name: 'a' }, { name: 'b', tools: ['no'] }] }),
      '"no"',
    ],
    [
      'a tool that the set of its agent lacks',
      mine({ tools: ['fetch'], agents: [{ name: 'a', tools: ['shell'] }] }),
      '"shell"',
    ],
    [
      'a list without the tool that codex cannot do without',
      { ...CODEX, ...mine({ tools: ['shell'] }) },
      '"apply_patch"',
    ],
    [
      'lists that one agent cannot keep apart',
      {
        ...CLAUDE,
        ...mine({
          agents: [
            { name: 'a', tools: ['Read', 'Bash'] },
            { name: 'b', tools: ['Read'] },
          ],
        }),
      },
      '"Bash"',
    ],
    [
      'a list beside none, for one agent',
      { ...CLAUDE, ...mine({ agents: [{ name: 'a', tools: ['Read'] }, { name: 'b' }] }) },
      '"Agent"',
    ],
  ])('%s is refused by name', async (_, changes, name) => {
    const { status, body } = await world().create(changes);
    expect({ status, code: body.code }).toEqual({ status: 400, code: 'tool_not_available' });
    expect(body.detail).toContain(name);
    expect(world().worker.placed).toEqual([]);
  });

  test.each([
    ['claude-code', { ...CLAUDE, ...mine({ tools: ['Read', 'Bash', 'Read'] }) }],
    ['codex', { ...CODEX, ...mine({ tools: ['apply_patch', 'view_image'] }) }],
    ['codex without a list', { ...CODEX, ...mine({ tools: [] }) }],
    [
      'several agents with one list',
      {
        ...CLAUDE,
        ...mine({
          agents: [
            { name: 'a', tools: ['Read', 'Bash'] },
            { name: 'b', tools: ['Bash', 'Read'] },
          ],
        }),
      },
    ],
  ])('of %s are passed on', async (_, changes) => {
    const { status, text } = await world().create(changes);
    expect(status, text).toBe(201);
    expect(world().placed.agent_input?.app?.capability_sets).toHaveLength(1);
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
