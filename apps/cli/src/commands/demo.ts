import { AGENTS, type Agent, type LlmVendor } from '@svc/contract';
import { Command } from 'commander';
import { parseAgent, parseVendor } from '../arguments/choices.ts';
import { exitWith, ignoreOutputErrors } from '../process-lifetime.ts';

interface Options {
  readonly agent: Agent;
  readonly keyEnv?: string;
  readonly vendor?: LlmVendor;
  readonly model?: string;
}

/** `svc demo`: shows a whole agent session; needs no key. */
export function demoCommand(): Command {
  return new Command('demo')
    .description('show a whole agent session; needs no key')
    .option('-a, --agent <name>', `agent to run: ${AGENTS.join(', ')}`, parseAgent, 'deictic')
    .option('--key-env <variable>', 'use a real model, with the key from this environment variable')
    .option('--vendor <name>', "vendor of the key; default: from the variable's name", parseVendor)
    .option('-m, --model <name>', "real model to use; default: the vendor's default")
    .addHelpText(
      'after',
      `
Without --key-env, the model is scripted: it runs on this machine and gives prepared answers. The demo
starts a temporary service, which shares only the images with a service that is already running, and
removes it at the end. With --key-env, it uses the service that is running here, if there is one.`,
    )
    .action(async (options: Options) => {
      ignoreOutputErrors();
      const { runDemo } = await import('../demo/run-demo.ts');
      try {
        await runDemo(options);
        exitWith(0);
      } catch (error) {
        exitWith(1);
        throw error;
      }
    });
}
