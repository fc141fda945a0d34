import { type RunOptions, type RunResult, runProcess } from './run-process.ts';
import type { ProcessContext } from './start-process.ts';

/** Linux lets an argument have 128 KiB, with the NUL at its end. */
const MAX_ARGUMENT_BYTES = 128 * 1024 - 1;

/** Runs a command of any length in a login shell, with an empty standard input. Fails like {@link runProcess}. */
export function runShell(
  context: ProcessContext,
  command: string,
  options: Omit<RunOptions, 'input'>,
): Promise<RunResult> {
  const shell = (script: string) => ({ command: '/bin/bash', args: ['-lc', script] });
  if (Buffer.byteLength(command) <= MAX_ARGUMENT_BYTES) {
    return runProcess(context, shell(command), options);
  }
  return runProcess(context, shell('eval "$(cat)"'), { ...options, input: command });
}
