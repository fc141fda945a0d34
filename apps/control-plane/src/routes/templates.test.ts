import { SESSION_TEMPLATES, TEMPLATES } from '@svc/contract';
import { describe, expect, test } from 'vitest';
import { useSessionWorld } from '../../test/session-world.ts';

/** Tools of deictic, and the templates in which it has them. */
const TOOLS: Readonly<Record<string, readonly string[]>> = {
  shell: TEMPLATES,
  browser_click: ['browser'],
  desktop_click: ['cua'],
  teleport: [],
};

const world = useSessionWorld();

const createSandbox = (template: unknown, more: object = {}) =>
  world().harness.call('POST', '/v1/sandboxes', {
    key: world().account.key,
    json: { template, ...more },
  });
const createSession = (template: unknown, more: object = {}) =>
  world().create({ template, ...more });

/** Makes the worker of the test offer these images. */
async function offer(templates: readonly string[]): Promise<void> {
  world().worker.templates = [...templates];
  await world().worker.register(world().harness.plane.url);
}

test('are those of the specification', () => {
  expect(TEMPLATES).toEqual(['standard', 'browser', 'cua', 'canvas']);
  expect(SESSION_TEMPLATES).toEqual(['standard', 'browser', 'cua']);
});

describe.each(TEMPLATES)('%s', (template) => {
  const inSessions = template !== 'canvas';

  test('is accepted by sandboxes', async () => {
    await offer(TEMPLATES);
    expect((await createSandbox(template)).status).toBe(201);
    expect(world().placed.placement.template).toBe(template);
  });

  test(inSessions ? 'is accepted by sessions' : 'is refused by sessions', async () => {
    await offer(TEMPLATES);
    const { status, body } = await createSession(template);
    if (inSessions) {
      expect({ status, placed: world().placed.placement.template }).toEqual({
        status: 201,
        placed: template,
      });
      return;
    }
    expect({ status, body }).toMatchObject({
      status: 400,
      body: { code: 'session_template_unknown', errors: [{ path: '/template' }] },
    });
    expect(world().worker.placed).toEqual([]);
  });

  test('is 501 without an image, in sandboxes and, where they accept it, in sessions', async () => {
    await offer(TEMPLATES.filter((other) => other !== template));
    const expected = { status: 501, body: { code: 'template_not_available' } };
    expect(await createSandbox(template)).toMatchObject(expected);
    if (inSessions) expect(await createSession(template)).toMatchObject(expected);
    expect(world().worker.placed).toEqual([]);
  });

  test.each(Object.entries(TOOLS))(
    'accepts the tool %s of an app if deictic has it there',
    async (tool, templates) => {
      await offer(TEMPLATES);
      const agents = [{ name: 'one', tools: [tool] }];
      const app_json = { name: 'app', capability_sets: [{ name: 'all', agents }] };
      const agent = { agent: 'deictic', llm_key: 'k', model: 'claude-sonnet-5-5', app_json };
      const answers = [await createSandbox(template, agent)];
      if (inSessions) {
        const app = { id: 'mine', capability_sets: { default: { tools: [tool] } } };
        answers.push(await createSession(template, { app }));
      }
      const has = templates.includes(template);
      const message = expect.stringContaining(`"${tool}" is no tool of deictic`);
      const refused = { status: 400, body: { code: 'tool_not_available', errors: [{ message }] } };
      for (const answer of answers) expect(answer).toMatchObject(has ? { status: 201 } : refused);
      expect(world().worker.placed).toHaveLength(has ? answers.length : 0);
    },
  );
});

describe.each([['windows'], ['Standard'], ['']])('the unknown template %j', (template) => {
  test('is 501 in sandboxes and 400 in sessions', async () => {
    await offer(TEMPLATES);
    expect(await createSandbox(template)).toMatchObject({
      status: 501,
      body: { code: 'unknown_template', errors: [{ path: '/template' }] },
    });
    expect(await createSession(template)).toMatchObject({
      status: 400,
      body: { code: 'session_template_unknown', errors: [{ path: '/template' }] },
    });
    expect(world().worker.placed).toEqual([]);
  });
});
