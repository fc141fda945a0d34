import { spawn } from 'node:child_process';
import { NetworkError } from './network-error.ts';

const DEADLINE_MS = 15_000;
const OUTPUT_BYTES = 1024 * 1024;

/**
 * Runs one program of the host to its end, with a deadline, and returns its standard output.
 * `input` becomes its standard input.
 *
 * @throws NetworkError `network_setup_failed` with the program's own words when it is missing,
 *   fails or takes longer than 15 s.
 */
export function run(program: string, args: readonly string[], input = ''): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const child = spawn(program, args, {
    stdio: 'pipe',
    signal: AbortSignal.timeout(DEADLINE_MS),
    killSignal: 'SIGKILL',
    // Its own group: a Ctrl-C meant for us must not leave half a change behind.
    detached: true,
    env: { ...process.env, LC_ALL: 'C', PATH: searchPath() },
  });
  let stdout = '';
  let stderr = '';
  const fail = (detail: string, cause?: unknown) =>
    reject(
      new NetworkError('network_setup_failed', `${program} ${args.join(' ')}: ${detail}`, {
        cause,
      }),
    );
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout = keep(stdout, text);
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr = keep(stderr, text);
  });
  // A program that ends early closes its input; its exit status tells why.
  child.stdin.on('error', (error) => {
    stderr = keep(stderr, error.message);
  });
  child.once('error', (error) => fail(error.message, error));
  child.once('close', (code, signal) => {
    if (code === 0) resolve(stdout);
    else fail(stderr.trim() || `ended with ${signal ?? `status ${code}`}`);
  });
  child.stdin.end(input);
  return promise;
}

function keep(text: string, more: string): string {
  return text.length < OUTPUT_BYTES ? text + more : text;
}

/** Service managers and plain user shells often leave the system directories out. */
function searchPath(): string {
  return [process.env.PATH, '/usr/sbin', '/sbin', '/usr/bin', '/bin'].filter(Boolean).join(':');
}
