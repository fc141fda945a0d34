import { OutputReader } from './output-reader.ts';
import {
  type ProcessContext,
  type ProcessExit,
  type ProcessRequest,
  startProcess,
} from './start-process.ts';

export type ProcessOutput = 'stdout' | 'stderr';

export interface RunOptions {
  /** Aborting it kills the whole group; the result then says `ended: 'aborted'`. */
  readonly signal?: AbortSignal;
  /** Kills the whole group after this; the result then says `ended: 'timeout'`. */
  readonly timeoutMs?: number;
  /** What the process reads; it is closed behind it. */
  readonly input?: string;
  /**
   * Called for each piece of output in order, never with part of a character. While a returned promise is
   * pending, no more of that output is read (back-pressure).
   */
  onOutput(output: ProcessOutput, text: string): void | Promise<void>;
}

export interface RunResult extends ProcessExit {
  readonly ended: 'exited' | 'timeout' | 'aborted';
}

/**
 * Runs a program to its end. What it leaves in the background goes on; its output is waited for only shortly.
 * Output is not kept here: `onOutput` bounds what it keeps.
 * @throws an error with `code` when it cannot be started; whatever `onOutput` throws, after killing the group
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
  // Awaited below; until then a failure of the reader must not count as unhandled.
  read.catch(() => child.kill());
  try {
    const exit = await child.exited;
    clearTimeout(timer);
    signal?.removeEventListener('abort', abort);
    for (const output of outputs) output.finish();
    await read;
    return { ...exit, ended };
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', abort);
  }
}
