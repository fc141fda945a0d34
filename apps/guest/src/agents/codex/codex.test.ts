import { expect } from 'vitest';
import { describeVendorCli } from '../../../test/vendor-cli/describe-vendor-cli.ts';
import { openCodex } from './index.ts';

describeVendorCli(
  'codex',
  {
    agent: 'codex',
    model: 'gpt-5.1',
    gatewayPath: '/openai',
    request: 'POST /openai/responses',
    keyVariable: 'OPENAI_API_KEY',
    transcripts: '.codex/sessions',
    unknownConversation: JSON.stringify({ id: '00000000-0000-4000-8000-000000000000' }),
    startsAnew: 'a new one begins',
    keepsInterruptedText: false,
    cutCode: 'llm_bad_response',
    program: ({ codex }) => codex,
    open: (context, binary, deadlines) => openCodex(context, { binary, maxRetries: 1 }, deadlines),
    // It returns to the model before a long command has ended, unless it is told to wait.
    shellCall: (command) => ({
      name: 'exec_command',
      arguments: { cmd: command, yield_time_ms: 60_000 },
    }),
    // It says how it starts its shell, too.
    shellFrame: (command, cwd) => ({
      name: 'shell',
      arguments: { command: expect.stringContaining(command), cwd },
    }),
    shellResult: (output) => output,
  },
  (test) => {
    test('goes on with a thread by its name', async ({ cli }) => {
      cli.script();
      await cli.run('before it was named');
      const { id: thread } = JSON.parse(cli.session.conversation());
      await cli.reopen({ resumeId: thread });
      await cli.run('resumed by its name');
      expect(cli.lastRequest()).toContain('before it was named');
    });
  },
);
