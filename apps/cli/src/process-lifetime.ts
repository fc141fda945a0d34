import { constants } from 'node:os';
import { INTERRUPTS } from '@svc/service-kit/interrupts';

/** How long leftover timers or sockets may keep the process alive after its work is done. */
const EXIT_GRACE_MS = 3_000;
const INTERRUPTED_EXIT = 128 + constants.signals.SIGINT;
/** Ctrl-C reaches a process twice, from the terminal and through npm, which counts as one request. */
export const DUPLICATE_SIGNAL_MS = 1_500;
const OUTPUTS = [process.stdout, process.stderr];
const SIGPIPE_EXIT = 128 + constants.signals.SIGPIPE;

/**
 * Runs `work` with a signal that aborts on Ctrl-C, SIGTERM or SIGHUP. Another one of these, unless it is the same Ctrl-C,
 * exits the process at once.
 * @throws DOMException `AbortError` from `work` when interrupted
 */
export async function withInterrupt<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const interrupt = new AbortController();
  let interruptedAt = 0;
  const stop = () => {
    if (!interrupt.signal.aborted) {
      interruptedAt = performance.now();
      interrupt.abort(new DOMException('interrupted', 'AbortError'));
    } else if (performance.now() - interruptedAt > DUPLICATE_SIGNAL_MS) {
      process.exit(INTERRUPTED_EXIT);
    }
  };
  for (const signal of INTERRUPTS) process.on(signal, stop);
  try {
    return await work(interrupt.signal);
  } finally {
    for (const signal of INTERRUPTS) process.off(signal, stop);
  }
}

/**
 * Exits with `code` as soon as the event loop is empty, or after a grace period if a leftover handle, such as a
 * timer, keeps the process alive.
 */
export function exitWith(code: number): void {
  process.exitCode = code;
  setTimeout(() => process.exit(), EXIT_GRACE_MS).unref();
}

/** Ends the process quietly, with the exit code of a SIGPIPE, when nobody reads its output any more. */
export function endWithoutReader(): void {
  for (const stream of OUTPUTS) stream.on('error', endOnBrokenPipe);
}

/**
 * Keeps a process alive that has to end in order when its output cannot be written: the terminal is closed, or the disk
 * of its file is full.
 */
export function ignoreOutputErrors(): void {
  for (const stream of OUTPUTS) {
    stream.off('error', endOnBrokenPipe);
    stream.on('error', () => undefined);
  }
}

function endOnBrokenPipe(error: NodeJS.ErrnoException): void {
  if (error.code === 'EPIPE') process.exit(SIGPIPE_EXIT);
  throw error;
}
