import { type ExecRequest, type ExecResponse, LIMITS } from '@svc/contract';
import type { Sandbox } from '../sandbox/sandbox.ts';
import type { ByteBudget } from './byte-budget.ts';
import { OutputCollector } from './output-collector.ts';
import { runCommand } from './run-command.ts';

/**
 * Runs a command and returns its complete output, both streams together and each apart. Output beyond the limit is dropped; the command keeps running.
 * @throws ServiceError as {@link runCommand}
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
    );
    return { ...output.finish(), ...outcome, truncated: output.truncated };
  } finally {
    output.release();
  }
}
