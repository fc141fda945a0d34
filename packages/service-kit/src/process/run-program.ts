import { spawn } from 'node:child_process';

const DEADLINE_MS = 15_000;
const MAX_OUTPUT_BYTES = 1024 * 1024;

/** A program that is missing, failed or took too long. The message holds its command line and standard error. */
export class ProgramError extends Error {
  override readonly name = 'ProgramError';
}

/**
 * Runs a program of this machine to completion and returns its standard output. After the deadline, it is killed with
 * whatever it has started.
 *
 * @param input text for the program's standard input
 * @throws ProgramError when the program is missing, fails or takes longer than `deadlineMs`, 15 s unless given
 */
export function runProgram(
  program: string,
  args: readonly string[],
  input = '',
  deadlineMs = DEADLINE_MS,
): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const child = spawn(program, args, {
    stdio: 'pipe',
    // A process group of its own: a Ctrl-C meant for this process must not interrupt a change half-way.
    detached: true,
    env: { ...process.env, LC_ALL: 'C', PATH: searchPath() },
  });
  const deadline = setTimeout(() => {
    fail(`took longer than ${deadlineMs / 1000} s`);
    if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
  }, deadlineMs);
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
  child.stdin.on('error', (error: NodeJS.ErrnoException) => {
    // A program that exits early closes its input. Its exit status and output say why.
    if (error.code !== 'EPIPE') stderr = appendBounded(stderr, `${error.message}\n`);
  });
  child.once('error', (error) => {
    clearTimeout(deadline);
    fail(error.message, error);
  });
  child.once('close', (code, signal) => {
    clearTimeout(deadline);
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
