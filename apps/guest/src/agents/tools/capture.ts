import { runProcess } from '../processes/index.ts';
import type { ToolContext } from './tool.ts';

export interface Captured {
  /** 127 when there is no such program. */
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
  /** The program was stopped because it wrote more than `maxChars`. */
  readonly overflowed: boolean;
}

const MAX_STDERR_CHARS = 4_000;
const TIMEOUT_MS = 60_000;
export const NO_SUCH_PROGRAM = 127;

/**
 * Runs a program as the agent's user and returns its output, up to `maxChars` characters. File tools use this to have
 * the permissions of that user instead of the runtime's.
 * @throws the reason of `signal` when it aborts; an Error when the program does not end in time
 */
export async function capture(
  context: ToolContext,
  [command, ...args]: readonly [string, ...string[]],
  options: {
    readonly signal: AbortSignal;
    readonly maxChars: number;
    readonly input?: string;
    readonly cwd?: string;
  },
): Promise<Captured> {
  const { signal, maxChars, input, cwd } = options;
  const enough = new AbortController();
  let stdout = '';
  let stderr = '';
  const request = { command, args, ...(cwd === undefined ? {} : { cwd }) };
  try {
    const { exitCode, ended } = await runProcess(context, request, {
      signal: AbortSignal.any([signal, enough.signal]),
      timeoutMs: TIMEOUT_MS,
      ...(input === undefined ? {} : { input }),
      onOutput: (output, text) => {
        if (output === 'stderr') {
          stderr = (stderr + text).slice(0, MAX_STDERR_CHARS);
          return;
        }
        stdout += text.slice(0, maxChars - stdout.length + 1);
        if (stdout.length > maxChars) enough.abort();
      },
    });
    signal.throwIfAborted();
    if (ended === 'timeout')
      throw new Error(`${command} did not end within ${TIMEOUT_MS / 1000} s`);
    const overflowed = stdout.length > maxChars;
    return { exitCode, stdout: stdout.slice(0, maxChars), stderr: stderr.trim(), overflowed };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    return { exitCode: NO_SUCH_PROGRAM, stdout: '', stderr: String(error), overflowed: false };
  }
}
