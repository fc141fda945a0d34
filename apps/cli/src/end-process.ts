const PATIENCE_MS = 3_000;

/**
 * Ends the process of a service whose pieces have ended: by itself, or after a moment when something
 * that a piece forgot, such as a timer, still holds it.
 */
export function endProcess(code: number): void {
  process.exitCode = code;
  setTimeout(() => process.exit(), PATIENCE_MS).unref();
}
