import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { DesktopError } from './desktop-error.ts';

/** Longest time of one command. An emulated processor needs a fraction of a second. */
const DEADLINE_MS = 20_000;
const MAX_STDERR_CHARS = 2_000;

/** How to run a command of xdotool. */
export interface XdotoolOptions {
  readonly display: string;
  readonly signal: AbortSignal;
  /** Text for its standard input. */
  readonly input?: string;
  /** Default {@link DEADLINE_MS}. */
  readonly deadlineMs?: number;
}

/**
 * Sends mouse and keyboard events to the display, with a command of xdotool.
 * @throws a DesktopError when it fails or takes too long; the reason of `signal` when it aborts
 */
export async function xdotool(args: readonly string[], options: XdotoolOptions): Promise<void> {
  const { display, signal, input = '', deadlineMs = DEADLINE_MS } = options;
  signal.throwIfAborted();
  const deadline = AbortSignal.timeout(deadlineMs);
  const child = spawn('xdotool', args, {
    env: { DISPLAY: display, PATH: process.env.PATH, LANG: 'C.UTF-8' },
    stdio: ['pipe', 'ignore', 'pipe'],
    signal: AbortSignal.any([signal, deadline]),
    killSignal: 'SIGKILL',
  });
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr = (stderr + text).slice(0, MAX_STDERR_CHARS);
  });
  // It may exit without reading it; the exit code is more telling.
  child.stdin.on('error', () => child.stdin.destroy());
  child.stdin.end(input);
  let exitCode: number | null;
  try {
    [exitCode] = await once(child, 'close');
  } catch (error) {
    signal.throwIfAborted();
    if (deadline.aborted) throw new DesktopError('The display did not react in time.');
    throw new DesktopError(`The input cannot be sent: ${describe(error)}`);
  }
  const unknown = /No such key name '([^']*)'/.exec(stderr)?.[1];
  if (unknown !== undefined) throw new DesktopError(`There is no key ${unknown}.`);
  if (exitCode !== 0) {
    throw new DesktopError(`The input cannot be sent: ${stderr.trim() || `exit code ${exitCode}`}`);
  }
}

function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
