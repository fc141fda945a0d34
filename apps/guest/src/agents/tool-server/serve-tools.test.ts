import { AGENT_TOOLS, agentTools, BROWSER_TOOLS, DESKTOP_TOOLS } from '@svc/contract';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { RunningDesktop } from '../../../test/desktop/running-desktop.ts';
import { McpClient } from '../../../test/tool-server/mcp-client.ts';
import { type AgentWorld, createAgentWorld } from '../../../test/vendor-cli/agent-world.ts';
import { appWith } from '../../../test/vendor-cli/limits.ts';
import { Desktop } from '../../desktop/index.ts';
import type { ToolMachine } from '../tools/template-tools.ts';
import { serveTools } from './index.ts';

/** A picture may have this many bytes, for deictic too. */
const MAX_IMAGE_BYTES = 700_000;
/** Nothing connects to it before a tool is called. */
const BROWSER = { browser: 'http://127.0.0.1:9' };

let world: AgentWorld;
beforeEach(async () => {
  world = await createAgentWorld('claude-code', 'claude-x', 'http://127.0.0.1:9');
});
afterEach(() => world[Symbol.asyncDispose]());

/** A client of the tools of a machine, as an app with these tools allows them; without tools: no app. */
async function open(machine: ToolMachine, ...tools: string[]): Promise<McpClient | undefined> {
  const context = world.context(tools.length === 0 ? {} : { app: appWith(...tools) });
  const server = await serveTools(context, machine);
  return server === undefined ? undefined : await McpClient.connect(server);
}

const namesOf = async (client: McpClient | undefined) =>
  (await client?.tools())?.map(({ name }) => name);

test('a template offers exactly the tools that an app can name in it', async () => {
  const desktop = new Desktop({ display: ':9', server: '', starts: '', width: 1, height: 1 });
  expect(await namesOf(await open(BROWSER))).toEqual(BROWSER_TOOLS);
  expect(await namesOf(await open({ desktop }))).toEqual(DESKTOP_TOOLS);
  expect(await open({})).toBeUndefined();
  for (const agent of ['claude-code', 'codex'] as const) {
    expect(agentTools(agent, 'browser')).toEqual([...AGENT_TOOLS[agent], ...BROWSER_TOOLS]);
    expect(agentTools(agent, 'cua')).toEqual([...AGENT_TOOLS[agent], ...DESKTOP_TOOLS]);
    expect(agentTools(agent, 'standard')).toEqual(AGENT_TOOLS[agent]);
  }
});

test('an app limits the tools, which are refused by name', async () => {
  const limited = await open(BROWSER, 'Read', 'browser_text');
  expect(await namesOf(limited)).toEqual(['browser_text']);
  await expect(limited?.call('browser_click', { ref: 'd1e1' })).rejects.toThrow('browser_click');
  expect(await open(BROWSER, 'Read')).toBeUndefined();
});

test('a tool without a page says so', async () => {
  const result = await (await open(BROWSER))?.call('browser_snapshot');
  expect(result).toMatchObject({ isError: true });
  expect(result?.content[0]?.text).toContain('No page is open');
});

describe('with a desktop', () => {
  let running: RunningDesktop;
  let desktop: Desktop;
  beforeAll(async () => {
    running = await RunningDesktop.start();
    desktop = new Desktop(running.settings);
    await vi.waitFor(
      async () => {
        const { elements } = await desktop.elements(10, AbortSignal.timeout(60_000));
        expect(elements.map(({ name }) => name)).toContain('Full name');
      },
      { timeout: 120_000 },
    );
  });
  afterAll(() => running?.close());

  test('a screenshot is a picture within the bounds of a model', async () => {
    const client = await open({ desktop });
    const shot = await client?.call('desktop_screenshot', { annotate: true });
    const [text, image] = shot?.content ?? [];
    expect(text).toEqual({ type: 'text', text: 'This is the desktop now.' });
    expect(image).toMatchObject({ type: 'image', mimeType: expect.stringMatching(/^image\//) });
    const bytes = Buffer.from(image?.data ?? '', 'base64');
    expect(bytes.length).toBeGreaterThan(1_000);
    expect(bytes.length).toBeLessThanOrEqual(MAX_IMAGE_BYTES);
  });

  test('clicks and keys reach its programs, whatever other callers do', async () => {
    running.events.length = 0;
    const [one, two] = [await open({ desktop }), await open({ desktop })];
    const listed = await one?.call('desktop_elements');
    const id = /(e\d+) textbox "Full name"/.exec(listed?.content[0]?.text ?? '')?.[1] ?? '';
    await one?.call('desktop_click_element', { id });
    await Promise.all([
      one?.call('desktop_type', { text: 'aaaa' }),
      two?.call('desktop_type', { text: 'bbbb' }),
    ]);
    const shown = await two?.call('desktop_elements');
    expect(shown?.content[0]?.text).toMatch(/"Full name".*value "(aaaabbbb|bbbbaaaa)"/);
    const outside = await one?.call('desktop_click', { x: 5_000, y: 1 });
    expect(outside).toMatchObject({ isError: true });
    expect(outside?.content[0]?.text).toContain('not on the display');
  });

  test('a result tells of a program that crashed', async () => {
    await running.countStarts('browser', 1);
    const client = await open({ desktop });
    await client?.call('desktop_wait', { seconds: 0 });
    await running.countStarts('browser', 2);
    const next = await client?.call('desktop_wait', { seconds: 0 });
    expect(next?.content[0]?.text).toBe(
      '[Note: the browser crashed and was started again.]\nWaited for 0 s.',
    );
  });
});
