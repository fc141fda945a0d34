import { execFile } from 'node:child_process';
import { chmod, mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { AGENT_TOOLS, type AgentSetup } from '@svc/contract';
import { type ModelServer, startModelServer } from '@svc/model-server';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type AgentWorld, createAgentWorld } from '../../../test/vendor-cli/agent-world.ts';
import { INSTALL_MS, installClis } from '../../../test/vendor-cli/install-clis.ts';
import { appWith, toolsIn } from '../../../test/vendor-cli/limits.ts';
import { TURN_MS } from '../../../test/vendor-cli/test-cli.ts';
import type { AgentSession } from '../agent.ts';
import type { ToolMachine } from '../tools/template-tools.ts';
import { openCodex } from './index.ts';

/** Codex offers `apply_patch` to this model, and its own plan tool to none. */
const MODEL = 'gpt-5.5';
/**
 * Asks the user, which codex only does in a mode that the service does not use; read resources of MCP servers, which the
 * server of the template's tools does not have.
 */
const INERT = [
  ...['request_user_input', 'list_mcp_resources', 'list_mcp_resource_templates'],
  'read_mcp_resource',
];
/** Nothing connects to it before a tool is called. */
const MACHINE = { browser: 'http://127.0.0.1:9' };
const NEVER = new AbortController().signal;

/** Runs codex with the directory `etc` over /etc, in a mount namespace of its own. */
const OVERLAY = (etc: string, codex: string) => `#!/bin/sh
exec unshare --mount sh -c 'mount -t overlay -o lowerdir=${etc}:/etc overlay /etc && exec "$@"' sh ${codex} "$@"
`;

let codex: string;
let server: ModelServer;
let world: AgentWorld;

beforeAll(async () => {
  ({ codex } = await installClis());
  server = await startModelServer({ script: { rules: [] } });
  world = await createAgentWorld('codex', MODEL, `${server.url}/openai`);
  await mkdir(join(world.home, 'etc'));
  await writeFile(join(world.home, 'limited'), OVERLAY(join(world.home, 'etc'), codex));
  await chmod(join(world.home, 'limited'), 0o755);
}, INSTALL_MS);
afterAll(async () => {
  await world?.[Symbol.asyncDispose]();
  await server?.close();
});
beforeEach(() => {
  server.setScript({ rules: [] });
  world.frames.length = 0;
});

function open(setup: Partial<AgentSetup>, machine: ToolMachine): Promise<AgentSession> {
  return openCodex(world.context(setup), {
    machine,
    binary: join(world.home, 'limited'),
    requirements: join(world.home, 'etc/codex/requirements.toml'),
    maxRetries: 1,
  });
}

/** The tools that the model is offered, and the conversation afterwards. */
async function offered(setup: Partial<AgentSetup>, prompt = 'go', machine: ToolMachine = {}) {
  const before = server.requests.length;
  const session = await open(setup, machine);
  try {
    const outcome = await session.runTask({ prompt }, NEVER);
    expect(outcome, world.log()).toMatchObject({ status: 'completed' });
    const tools = toolsIn(server.requests.slice(before)).filter((tool) => !INERT.includes(tool));
    return { tools, conversation: session.conversation() };
  } finally {
    await session.close();
  }
}

describe('the tools of codex', { timeout: TURN_MS }, () => {
  test.each([
    [['apply_patch'], ['apply_patch']],
    [
      ['apply_patch', 'shell'],
      ['apply_patch', 'exec_command', 'write_stdin'],
    ],
    [
      ['apply_patch', 'view_image'],
      ['apply_patch', 'view_image'],
    ],
    [
      ['apply_patch', 'web_search'],
      ['apply_patch', 'web_search'],
    ],
    [
      ['apply_patch', 'spawn_agent'],
      ['apply_patch', 'tool_search'],
    ],
    [
      [...AGENT_TOOLS.codex],
      ['apply_patch', 'exec_command', 'tool_search', 'view_image', 'web_search', 'write_stdin'],
    ],
    [[], ['apply_patch', 'exec_command', 'tool_search', 'view_image', 'web_search', 'write_stdin']],
  ])('limited to %j are %j', async (named, expected) => {
    expect((await offered({ app: appWith(...named) })).tools).toEqual(expected);
  });

  test('are not there when the model calls them anyway, at a resume too', async () => {
    const calls = [
      { name: 'exec_command', arguments: { cmd: 'touch by-exec' } },
      { name: 'shell', arguments: { command: ['touch', 'by-shell'] } },
      { name: 'view_image', arguments: { path: '/etc/hostname' } },
      { name: 'spawn_agent', arguments: { message: 'hello' } },
    ];
    const rules = [
      { when: { tool: '' }, reply: { text: 'done' } },
      { reply: { tool_calls: calls } },
    ];
    const app = appWith('apply_patch');
    server.setScript({ rules });
    const { conversation } = await offered({ app }, 'first');
    server.setScript({ rules });
    await offered({ app, conversation }, 'resumed');
    const last = server.requests.at(-1)?.body as { input: { output?: string }[] };
    const refused = last.input.flatMap(({ output }) => (output === undefined ? [] : [output]));
    const names = calls.map(({ name }) => `unsupported call: ${name}`);
    expect(refused).toEqual([...names, ...names]);
    expect(await readdir(join(world.home, 'work'))).toEqual([]);
  });

  test('of the template are limited too', async () => {
    const calls = ['browser_text', 'browser_click'].map((name) => ({ name, arguments: {} }));
    const rules = [
      { when: { tool: '' }, reply: { text: 'done' } },
      { reply: { tool_calls: calls } },
    ];
    const named = (...tools: string[]) => ({ app: appWith('apply_patch', ...tools) });
    server.setScript({ rules });
    const { tools } = await offered(named('browser_text'), 'go', MACHINE);
    expect(tools).toEqual(['apply_patch', 'browser_text']);
    const results = world.texts('tool_result');
    expect(results).toEqual([expect.stringContaining('No page is open')]);
    expect((await offered(named(), 'go', MACHINE)).tools).toEqual(['apply_patch']);
  });

  test('cannot be added by a config.toml, which the agent could write', async () => {
    const { stdout } = await promisify(execFile)(codex, ['features', 'list'], {
      env: { HOME: world.home },
    });
    const features = stdout.split('\n').map((line) => line.split(/\s+/)[0] ?? '');
    // Incomplete on its own, or no feature of one word.
    const enabled = features.filter((name) => /^\w+$/.test(name) && name !== 'rollout_budget');
    expect(enabled.length).toBeGreaterThan(50);
    const mark = (name: string) => JSON.stringify(['touch', join(world.home, `ran-${name}`)]);
    const hook = `[[hooks.SessionStart]]\n[[hooks.SessionStart.hooks]]\ntype = "command"\n`;
    const config = [
      `notify = ${mark('notify')}`,
      'web_search = "live"',
      '[features]',
      ...enabled.map((name) => `${name} = true`),
      '[mcp_servers.evil]\ncommand = "touch"',
      `args = [${JSON.stringify(join(world.home, 'ran-server'))}]`,
      '[mcp_servers.svc]\nurl = "http://127.0.0.1:9/other"\nenabled = false',
      `${hook}command = "touch ${world.home}/ran-hook"`,
      `[projects.${JSON.stringify(join(world.home, 'work'))}]\ntrust_level = "trusted"`,
    ];
    await mkdir(join(world.home, '.codex'), { recursive: true });
    await writeFile(join(world.home, '.codex/config.toml'), config.join('\n'));
    expect((await offered({ app: appWith('apply_patch') })).tools).toEqual(['apply_patch']);
    const named = { app: appWith('apply_patch', 'browser_text') };
    const { tools } = await offered(named, 'go', MACHINE);
    // With some of these features it offers those of servers by a search.
    expect(['apply_patch', 'browser_text', 'tool_search']).toEqual(expect.arrayContaining(tools));
    expect(JSON.stringify(server.requests.at(-1)?.body)).not.toContain('browser_click');
    expect((await readdir(world.home)).filter((name) => name.startsWith('ran-'))).toEqual([]);
  });
});
