import { expect } from 'vitest';
import { describeVendorCli } from '../../../test/vendor-cli/describe-vendor-cli.ts';
import { openClaudeCode } from './index.ts';

describeVendorCli(
  'Claude Code',
  {
    agent: 'claude-code',
    model: 'claude-sonnet-4-5',
    gatewayPath: '/anthropic',
    request: 'POST /anthropic/v1/messages?beta=true',
    keyVariable: 'ANTHROPIC_API_KEY',
    transcripts: '.claude/projects',
    unknownConversation: JSON.stringify({ id: '00000000-0000-4000-8000-000000000000' }),
    startsAnew: 'a new conversation starts',
    keepsInterruptedText: true,
    cutCode: 'llm_unavailable',
    program: ({ claude }) => claude,
    open: (context, binary, deadlines) =>
      openClaudeCode(context, { binary, maxRetries: 1 }, deadlines),
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
