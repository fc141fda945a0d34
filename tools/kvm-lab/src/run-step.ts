import { spawn } from 'node:child_process';
import { once } from 'node:events';

/** Characters of output that an error message includes. */
const KEPT_OUTPUT = 4000;

/** The outcome of a program: its exit status, null after a signal, and the end of what it printed. */
export interface StepResult {
  readonly status: number | null;
  readonly output: string;
}

/** Runs a program to its end. The kernel kills it when this process ends, and `signal` ends it. */
export async function runStep(
  program: string,
  args: readonly string[],
  signal: AbortSignal,
): Promise<StepResult> {
  const child = spawn('setpriv', ['--pdeathsig', 'KILL', '--', program, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    signal,
    killSignal: 'SIGKILL',
    env: { ...process.env, LC_ALL: 'C', DEBIAN_FRONTEND: 'noninteractive' },
  });
  let output = '';
  const collect = (text: string) => {
    output = (output + text).slice(-KEPT_OUTPUT);
  };
  child.stdout.setEncoding('utf8').on('data', collect);
  child.stderr.setEncoding('utf8').on('data', collect);
  const [status] = (await once(child, 'close')) as [number | null];
  return { status, output };
}

/** Runs a program that must succeed. Throws an error with the end of its output. */
export async function mustRun(
  program: string,
  args: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  const { status, output } = await runStep(program, args, signal);
  if (status !== 0) throw new Error(`${program} ended with ${status}:\n${output.trim()}`);
}
