import { AGENTS, type Agent, LLM_VENDORS, type LlmVendor } from '@svc/contract';
import { Command } from 'commander';
import { oneOf } from '../arguments/words.ts';
import { endProcess } from '../end-process.ts';

interface Options {
  readonly agent: Agent;
  readonly keyEnv?: string;
  readonly vendor?: LlmVendor;
  readonly model?: string;
}

const parseAgent = oneOf(AGENTS, 'an agent', '--agent deictic');
const parseVendor = oneOf(LLM_VENDORS, 'a vendor', '--vendor anthropic');

/** `svc demo`: a whole session with an agent, without a key. */
export function demoCommand(): Command {
  return new Command('demo')
    .description('show a whole session with an agent; needs no key')
    .option('-a, --agent <name>', `who works: ${AGENTS.join(', ')}`, parseAgent, 'deictic')
    .option('--key-env <variable>', 'use a real model, with the key in this environment variable')
    .option('--vendor <name>', "whose key it is; default: by the variable's name", parseVendor)
    .option('-m, --model <name>', "real model to use; default: the vendor's")
    .addHelpText(
      'after',
      `
Without --key-env the model is scripted: it runs on this machine and says what is written down for it.
The demo starts a service of its own beside any that runs, shares nothing with it but the images, and
removes it at the end. With --key-env it uses the service that runs here, if there is one.`,
    )
    .action(async (options: Options) => {
      const { runDemo } = await import('../demo/run-demo.ts');
      await runDemo(options);
      endProcess(0);
    });
}
