import { expect } from 'vitest';
import { describeVendorCli } from '../../../test/vendor-cli/describe-vendor-cli.ts';
import { openCodex } from './index.ts';

describeVendorCli(
  'codex',
  {
    agent: 'codex',
    model: 'gpt-5.1',
    otherModel: 'gpt-5.2',
    gatewayPath: '/openai',
    request: 'POST /openai/responses',
    keyVariable: 'OPENAI_API_KEY',
    transcripts: '.codex/sessions',
    unknownConversation: JSON.stringify({ id: '00000000-0000-4000-8000-000000000000' }),
    startsAnew: 'a new one begins',
    keepsInterruptedText: false,
    cutCode: 'llm_bad_response',
    program: ({ codex }) => codex,
    open: (context, parts, deadlines) => openCodex(context, { ...parts, maxRetries: 1 }, deadlines),
    toolCall: (name, input) => ({ name, arguments: input }),
    // Unless told to wait, codex returns to the model before a long command has ended.
    shellCall: (command) => ({
      name: 'exec_command',
      arguments: { cmd: command, yield_time_ms: 60_000 },
    }),
    // The frame also shows how codex starts its shell.
    shellFrame: (command, cwd) => ({
      name: 'shell',
      arguments: { command: expect.stringContaining(command), cwd },
    }),
    shellResult: (output) => output,
  },
  (test) => {
    test('resumes a thread by its id', async ({ cli }) => {
      cli.script();
      await cli.run('before it was resumed by id');
      const { id: thread } = JSON.parse(cli.session.conversation());
      await cli.reopen({ resumeId: thread });
      await cli.run('resumed by its id');
      expect(cli.lastRequest()).toContain('before it was resumed by id');
    });
  },
);
