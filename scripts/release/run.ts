import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const DEADLINE_MS = 600_000;
const MAX_OUTPUT_BYTES = 64 * 1024 * 1024;

export interface RunOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** Runs a program of the build to its end, for at most ten minutes. Returns its output. @throws Error with what it printed */
export async function run(
  program: string,
  args: readonly string[],
  { cwd, env = {} }: RunOptions = {},
): Promise<string> {
  const options = {
    ...(cwd === undefined ? {} : { cwd }),
    env: { ...process.env, LC_ALL: 'C', ...env },
    timeout: DEADLINE_MS,
    maxBuffer: MAX_OUTPUT_BYTES,
  };
  try {
    return (await promisify(execFile)(program, args, options)).stdout;
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string };
    throw new Error(`${program} ${args.join(' ')} failed:\n${stdout}${stderr}`, { cause: error });
  }
}
