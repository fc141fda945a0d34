import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const TIMEOUT_MS = 10_000;

/** The output of a program that only looks, or undefined when it is missing or fails. */
export async function runProgram(
  program: string,
  args: readonly string[],
): Promise<string | undefined> {
  try {
    const env = { ...process.env, LC_ALL: 'C' };
    const { stdout } = await promisify(execFile)(program, args, { timeout: TIMEOUT_MS, env });
    return stdout;
  } catch {
    // Why it failed is for the check to say: it knows what the program is needed for.
    return undefined;
  }
}
