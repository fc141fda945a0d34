import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const TIMEOUT_MS = 10_000;

/** Runs a program without side effects and returns its output, or undefined if it is missing or fails. */
export async function runProgram(
  program: string,
  args: readonly string[],
): Promise<string | undefined> {
  try {
    const env = { ...process.env, LC_ALL: 'C' };
    const { stdout } = await promisify(execFile)(program, args, { timeout: TIMEOUT_MS, env });
    return stdout;
  } catch {
    // The check reports the failure, because it knows why the program is needed.
    return undefined;
  }
}
