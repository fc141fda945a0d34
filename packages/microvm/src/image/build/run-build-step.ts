import { spawn } from 'node:child_process';
import { MicrovmError } from '../../microvm-error.ts';

/** Characters of output that an error message includes. */
const KEPT_OUTPUT = 4000;
const PROGRESS_LENGTH = 100;

export interface BuildStepOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Called with the lines that the program prints. */
  readonly onProgress: (line: string) => void;
}

/**
 * Runs a program of a build in a process group of its own. Aborting `signal` kills the whole group. The kernel also
 * kills the program when this process ends in any way.
 *
 * @throws MicrovmError `internal` with the end of the output when the program fails
 */
export async function runBuildStep(
  program: string,
  args: readonly string[],
  { cwd, env, onProgress }: BuildStepOptions,
  signal: AbortSignal,
): Promise<void> {
  signal.throwIfAborted();
  const child = spawn('setpriv', ['--pdeathsig', 'KILL', '--', program, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
    env: { ...process.env, LC_ALL: 'C', ...env },
    ...(cwd === undefined ? {} : { cwd }),
  });
  let output = '';
  const collect = (text: string) => {
    output = (output + text).slice(-KEPT_OUTPUT);
    const line = text.split(/[\r\n]/).findLast((part) => part.trim() !== '');
    if (line !== undefined) onProgress(line.trim().slice(0, PROGRESS_LENGTH));
  };
  child.stdout.setEncoding('utf8').on('data', collect);
  child.stderr.setEncoding('utf8').on('data', collect);
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const abort = () => {
    if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
  };
  child.once('spawn', () => signal.addEventListener('abort', abort, { once: true }));
  child.once('error', reject);
  child.once('close', (code, killed) => {
    signal.removeEventListener('abort', abort);
    if (signal.aborted) reject(signal.reason);
    else if (code === 0) resolve();
    else reject(failed(program, killed ?? `status ${code}`, output));
  });
  await promise;
}

function failed(program: string, outcome: string, output: string): MicrovmError {
  return new MicrovmError('internal', `${program} ended with ${outcome}:\n${output.trim()}`);
}
