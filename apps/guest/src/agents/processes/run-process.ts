import { OutputReader } from './output-reader.ts';
import {
  type ProcessContext,
  type ProcessExit,
  type ProcessRequest,
  startProcess,
} from './start-process.ts';

export type ProcessOutput = 'stdout' | 'stderr';

export interface RunOptions {
  /** Kills the whole group when it aborts; the result is then `ended: 'aborted'`. */
  readonly signal?: AbortSignal;
  /** Kills the whole group after this time; the result is then `ended: 'timeout'`. */
  readonly timeoutMs?: number;
  /** Standard input of the process. Default: empty. */
  readonly input?: string;
  /**
   * Called for each chunk of output in order, always with whole characters. While a returned promise is pending, no
   * more of that output is read (back-pressure).
   */
  onOutput(output: ProcessOutput, text: string): void | Promise<void>;
}

export interface RunResult extends ProcessExit {
  readonly ended: 'exited' | 'timeout' | 'aborted';
}

/**
 * Runs a program to completion. Processes that it leaves in the background keep running; their output is read only
 * briefly. Output is not buffered here: `onOutput` must bound what it keeps.
 * @throws an error with `code` when the program cannot be started; the error of `onOutput`, after killing the group
 */
export async function runProcess(
  context: ProcessContext,
  request: ProcessRequest,
  options: RunOptions,
): Promise<RunResult> {
  const { signal, timeoutMs, input = '', onOutput } = options;
  if (signal?.aborted) return { exitCode: 137, signal: 'SIGKILL', ended: 'aborted' };
  const child = await startProcess(context, request);
  let ended: RunResult['ended'] = 'exited';
  const kill = (how: RunResult['ended']) => {
    ended = how;
    child.kill();
  };
  const abort = () => kill('aborted');
  const timer = timeoutMs === undefined ? undefined : setTimeout(kill, timeoutMs, 'timeout');
  signal?.addEventListener('abort', abort, { once: true });
  if (signal?.aborted) abort();
  child.stdin.end(input);
  const outputs = [
    new OutputReader(child.stdout, (text) => onOutput('stdout', text)),
    new OutputReader(child.stderr, (text) => onOutput('stderr', text)),
  ];
  const read = Promise.all(outputs.map((output) => output.read()));
  // Awaited below; until then a rejection must not count as unhandled.
  read.catch(() => child.kill());
  try {
    const exit = await child.exited;
    clearTimeout(timer);
    signal?.removeEventListener('abort', abort);
    for (const output of outputs) output.processExited();
    await read;
    return { ...exit, ended };
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', abort);
  }
}
