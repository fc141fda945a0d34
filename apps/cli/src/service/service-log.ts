import { closeSync, fstatSync, ftruncateSync, openSync, writeSync } from 'node:fs';
import { createLogger, type Logger, prettyLine } from '@svc/service-kit/logging';

const WARNING = 40;
/** A log larger than this is truncated at the next start. */
const MAX_BYTES = 64 * 1024 * 1024;

/** The fields of a log line that are used here. */
interface Line {
  readonly level: number;
  readonly err?: { readonly message?: string };
}

/**
 * Opens the log of a service started by `svc up`. Every line goes to `file` as JSON; warnings and errors are also
 * passed to `show`, shortened to one line.
 */
export function openServiceLog(
  file: string,
  level: string,
  show: (line: string) => void,
): { logger: Logger; close(): void } {
  const descriptor = openSync(file, 'a', 0o600);
  if (fstatSync(descriptor).size > MAX_BYTES) ftruncateSync(descriptor);
  const write = (line: string) => {
    try {
      writeSync(descriptor, line);
    } catch (error) {
      // A full disk must not end the service, so the failure is only shown.
      show(`svc: cannot write the log: ${String(error)}`);
    }
    const record = JSON.parse(line) as Line;
    if (record.level >= WARNING) show(shortLine(line, record));
  };
  return {
    logger: createLogger({ level, pretty: false, destination: { write } }),
    close: () => closeSync(descriptor),
  };
}

/** A log line as one line of text, without the stack of its error. */
function shortLine(line: string, { err }: Line): string {
  const [first = ''] = prettyLine(line).split('\n');
  return err?.message === undefined ? first : `${first}: ${err.message.split('\n')[0]}`;
}
