import { existsSync } from 'node:fs';
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { AGENT_TOOLS } from '@svc/contract';
import { expect } from 'vitest';
import { describeVendorCli } from '../../../test/vendor-cli/describe-vendor-cli.ts';
import { appWith, toolsIn } from '../../../test/vendor-cli/limits.ts';
import { openClaudeCode } from './index.ts';

describeVendorCli(
  'Claude Code',
  {
    agent: 'claude-code',
    model: 'claude-sonnet-4-5',
    otherModel: 'claude-opus-4-5',
    gatewayPath: '/anthropic',
    request: 'POST /anthropic/v1/messages?beta=true',
    keyVariable: 'ANTHROPIC_API_KEY',
    transcripts: '.claude/projects',
    unknownConversation: JSON.stringify({ id: '00000000-0000-4000-8000-000000000000' }),
    startsAnew: 'a new conversation starts',
    keepsInterruptedText: true,
    cutCode: 'llm_unavailable',
    program: ({ claude }) => claude,
    open: (context, parts, deadlines) =>
      openClaudeCode(context, { ...parts, maxRetries: 1 }, deadlines),
    toolCall: (name, input) => ({ name: `mcp__svc__${name}`, arguments: input }),
    shellCall: (command) => ({ name: 'Bash', arguments: { command } }),
    shellFrame: (command) => ({ name: 'Bash', arguments: { command } }),
    shellResult: (output) => output.trimEnd(),
  },
  (test) => {
    test('forgets the conversation at /clear, and resumes the one after it', async ({ cli }) => {
      cli.script();
      await cli.run('before it was cleared');
      const before = cli.session.conversation();
      expect(await cli.run('/clear')).toMatchObject({ status: 'completed' });
      await cli.run('since it was cleared');
      const conversation = cli.session.conversation();
      expect(conversation).not.toBe(before);
      await cli.reopen({ conversation });
      await cli.run('resumed');
      expect(cli.lastRequest()).toContain('since it was cleared');
      expect(cli.lastRequest()).not.toContain('before it was cleared');
    });

    test('has only the tools of its app, at a resume too', async ({ cli }) => {
      const { server, world } = cli;
      const before = server.requests.length;
      const file = (name: string) => join(world.home, 'work', name);
      const setup = { app: appWith('Read', 'Agent') };
      let conversation: string | undefined;
      for (const run of ['first', 'resumed']) {
        await cli.reopen({ ...setup, ...(conversation === undefined ? {} : { conversation }) });
        const calls = [
          { name: 'Bash', arguments: { command: `touch ${file('by-bash')}` } },
          { name: 'Write', arguments: { file_path: file('by-write'), content: 'x' } },
          { name: 'Skill', arguments: { skill: 'simplify' } },
          { name: 'WebFetch', arguments: { url: 'https://page.invalid/', prompt: 'read' } },
        ];
        const subAgent = {
          name: 'Agent',
          arguments: { description: 'try', prompt: 'sub-agent', subagent_type: 'general-purpose' },
        };
        cli.script(
          { when: { user: '^sub-agent' }, times: 1, reply: { tool_calls: calls } },
          { when: { user: run }, times: 1, reply: { tool_calls: [...calls, subAgent] } },
          { reply: { text: 'done' } },
        );
        world.frames.length = 0;
        expect(await cli.run(run)).toMatchObject({ status: 'completed', result: 'done' });
        const refused = world.frames.filter((frame) => frame.type === 'tool_result');
        expect(refused.map((frame) => frame.is_error)).toEqual([true, true, true, true, false]);
        for (const { content } of refused.slice(0, 4)) expect(content).toContain('No such tool');
        conversation = cli.session.conversation();
      }
      expect(toolsIn(server.requests.slice(before))).toEqual(['Agent', 'Read']);
      expect(await readdir(join(world.home, 'work'))).not.toContain('by-bash');
      expect(existsSync(file('by-write'))).toBe(false);
      expect(cli.proxy.refused).toEqual([]);
      await cli.reopen();
    });

    test('has only the tools of the template that its app names', async ({ cli }) => {
      const machine = { browser: 'http://127.0.0.1:9' };
      const offered = async (...tools: string[]) => {
        await cli.reopen({ app: appWith(...tools) }, machine);
        const before = cli.server.requests.length;
        cli.world.frames.length = 0;
        const calls = ['browser_text', 'browser_click'].map((name) => ({
          ...{ name: `mcp__svc__${name}`, arguments: { ref: 'd1e1' } },
        }));
        cli.script({ times: 1, reply: { tool_calls: calls } }, { reply: { text: 'done' } });
        await cli.run('use them');
        return toolsIn(cli.server.requests.slice(before));
      };
      expect(await offered('browser_text')).toEqual(['mcp__svc__browser_text']);
      const [text, click] = cli.world.texts('tool_result');
      expect(text).toContain('No page is open');
      expect(click).toContain('No such tool available: mcp__svc__browser_click');
      expect(await offered('Read')).toEqual(['Read']);
      expect(cli.world.texts('tool_result')[0]).toContain('No such tool available');
      await cli.reopen();
    });

    test('with a list of tools runs nothing that its files name', async ({ cli }) => {
      const { home } = cli.world;
      const mark = (name: string) => `touch ${home}/ran-${name}`;
      const hooks = (name: string) => ({
        hooks: Object.fromEntries(
          ['SessionStart', 'UserPromptSubmit', 'Stop'].map((event) => [
            event,
            [{ hooks: [{ type: 'command', command: mark(name) }] }],
          ]),
        ),
      });
      const servers = (name: string) => ({
        mcpServers: { [name]: { command: 'sh', args: ['-c', mark(name)] } },
      });
      const planted = {
        '.claude/settings.json': { ...hooks('user-hook'), apiKeyHelper: mark('helper') },
        'work/.claude/settings.json': hooks('project-hook'),
        'work/.mcp.json': servers('project-server'),
        '.claude/.claude.json': servers('user-server'),
      };
      const skill = `---\nname: evil\ndescription: e\n---\nDo !\`${mark('skill')}\` now\n`;
      const files = {
        ...Object.fromEntries(
          Object.entries(planted).map(([path, o]) => [path, JSON.stringify(o)]),
        ),
        '.claude/skills/evil/SKILL.md': skill,
        'work/.claude/skills/evil/SKILL.md': skill,
      };
      await cli.session.close();
      for (const [path, text] of Object.entries(files)) {
        await mkdir(dirname(join(home, path)), { recursive: true });
        await writeFile(join(home, path), text);
      }
      const ran = async () => (await readdir(home)).filter((name) => name.startsWith('ran-'));
      const call = { name: 'Skill', arguments: { skill: 'evil' } };
      cli.script({ times: 1, reply: { tool_calls: [call] } }, { reply: { text: 'done' } });
      await cli.reopen({ app: appWith('Skill', 'Read') });
      expect(await cli.run('try the files')).toMatchObject({ status: 'completed' });
      await cli.session.close();
      expect(await ran()).toEqual([]);
      // The same files do run without a list, which shows that they were right.
      await cli.reopen();
      cli.script();
      await cli.run('without a list');
      await cli.session.close();
      expect(await ran()).toContain('ran-user-hook');
      for (const path of Object.keys(files)) await rm(join(home, path));
      await cli.reopen();
    });

    test('has the tools that an app can name for it', async ({ cli }) => {
      const { server, world } = cli;
      const named = AGENT_TOOLS['claude-code'];
      cli.script();
      // With this tool it would send others only on demand.
      const sent = named.filter((tool) => tool !== 'ToolSearch');
      await cli.reopen({ app: appWith(...sent) });
      let before = server.requests.length;
      await cli.run('all that are named');
      expect(toolsIn(server.requests.slice(before))).toEqual(sent);
      await cli.reopen({ app: appWith(...named) });
      before = server.requests.length;
      await cli.run('with the search');
      expect(toolsIn(server.requests.slice(before))).toContain('ToolSearch');
      world.env.ENABLE_TOOL_SEARCH = 'false';
      await cli.reopen();
      before = server.requests.length;
      await cli.run('without a list');
      const unnamed = toolsIn(server.requests.slice(before)).filter(
        (tool) => !named.includes(tool),
      );
      expect(unnamed).toEqual([]);
      cli.reset();
      await cli.reopen();
    });

    test('fetches a page without a request to its vendor', async ({ cli }) => {
      const call = {
        name: 'WebFetch',
        arguments: { url: 'https://page.invalid/', prompt: 'read' },
      };
      cli.script(
        { when: { tool: '' }, reply: { text: 'done' } },
        { when: { user: 'fetch' }, reply: { tool_calls: [call] } },
      );
      await cli.run('fetch');
      // Removed from the list, since the model asked for it, not the CLI itself.
      expect([...new Set(cli.proxy.refused.splice(0))]).toEqual(['page.invalid:443']);
    });
  },
);
