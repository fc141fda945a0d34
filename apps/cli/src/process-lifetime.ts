/** How long leftover timers or sockets may keep the process alive after its work is done. */
const EXIT_GRACE_MS = 3_000;

/**
 * Runs `work` with a signal that aborts on Ctrl-C or SIGTERM.
 * @throws DOMException `AbortError` from `work` when interrupted
 */
export async function withInterrupt<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const interrupt = new AbortController();
  const stop = () => interrupt.abort(new DOMException('interrupted', 'AbortError'));
  process.once('SIGINT', stop);
  process.once('SIGTERM', stop);
  try {
    return await work(interrupt.signal);
  } finally {
    process.off('SIGINT', stop);
    process.off('SIGTERM', stop);
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

/** Keeps a server alive when its output cannot be written: the terminal is closed, or the disk of its file is full. */
export function ignoreOutputErrors(): void {
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
}
