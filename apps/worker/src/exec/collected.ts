import { type ExecRequest, type ExecResponse, LIMITS } from '@svc/contract';
import type { Sandbox } from '../sandbox/sandbox.ts';
import type { ByteBudget } from './byte-budget.ts';
import { OutputCollector } from './output-limit.ts';
import { runCommand } from './run.ts';

/**
 * Runs a command and answers its output as a whole. Output beyond the limit is dropped while the command
 * goes on. @throws ServiceError as {@link runCommand}
 */
export async function collectCommand(
  sandbox: Sandbox,
  request: ExecRequest,
  budget: ByteBudget,
  caller: AbortSignal,
): Promise<ExecResponse> {
  const output = new OutputCollector(LIMITS.execOutputBytes, budget);
  try {
    const outcome = await runCommand(
      sandbox,
      request,
      (stream, chunk) => output.add(stream, chunk),
      caller,
      { mergeOutput: true },
    );
    return { output: output.finish(), ...outcome, truncated: output.truncated };
  } finally {
    output.release();
  }
}
