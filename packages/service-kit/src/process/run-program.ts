import { spawn } from 'node:child_process';

const DEADLINE_MS = 15_000;
const MAX_OUTPUT_BYTES = 1024 * 1024;

/** A program that is missing, failed or took too long. The message holds its command line and standard error. */
export class ProgramError extends Error {
  override readonly name = 'ProgramError';
}

/**
 * Runs a program of this machine to completion and returns its standard output.
 *
 * @param input text for the program's standard input
 * @throws ProgramError when the program is missing, fails or takes longer than 15 s
 */
export function runProgram(program: string, args: readonly string[], input = ''): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const child = spawn(program, args, {
    stdio: 'pipe',
    signal: AbortSignal.timeout(DEADLINE_MS),
    killSignal: 'SIGKILL',
    // A process group of its own: a Ctrl-C meant for this process must not interrupt a change half-way.
    detached: true,
    env: { ...process.env, LC_ALL: 'C', PATH: searchPath() },
  });
  let stdout = '';
  let stderr = '';
  const fail = (detail: string, cause?: unknown) =>
    reject(new ProgramError(`${program} ${args.join(' ')}: ${detail}`, { cause }));
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout = appendBounded(stdout, text);
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr = appendBounded(stderr, text);
  });
  // A program that exits early closes its input. Its exit status says why.
  child.stdin.on('error', (error) => {
    stderr = appendBounded(stderr, error.message);
  });
  child.once('error', (error) => fail(error.message, error));
  child.once('close', (code, signal) => {
    if (code === 0) resolve(stdout);
    else fail(stderr.trim() || `ended with ${signal ?? `status ${code}`}`);
  });
  child.stdin.end(input);
  return promise;
}

function appendBounded(text: string, more: string): string {
  return text.length < MAX_OUTPUT_BYTES ? text + more : text;
}

/** Service managers and the shells of ordinary users often leave the system directories out. */
function searchPath(): string {
  return [process.env.PATH, '/usr/sbin', '/sbin', '/usr/bin', '/bin'].filter(Boolean).join(':');
}
