/** The signals that interrupt a run: Ctrl-C, the end that another program asks for, and a terminal that is closed. */
export const INTERRUPTS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * Aborts at the first of {@link INTERRUPTS}. Later ones do nothing: Ctrl-C in a terminal reaches a program a second time
 * through npm, and must not end it while it cleans up. Nor does output that can no longer be written.
 */
export function interruptSignal(): AbortSignal {
  const interrupt = new AbortController();
  for (const name of INTERRUPTS) {
    process.on(name, () => interrupt.abort(new DOMException(`ended by ${name}`, 'AbortError')));
  }
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
  return interrupt.signal;
}
