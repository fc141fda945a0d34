import { closeSync, fstatSync, ftruncateSync, openSync, writeSync } from 'node:fs';
import { createLogger, type Logger, prettyLine } from '@svc/service-kit/logging';

const WARNING = 40;
/** A log that has grown beyond this is started anew at the next start. */
const LONGEST_BYTES = 64 * 1024 * 1024;

/** What a line of the log holds that matters here. */
interface Line {
  readonly level: number;
  readonly err?: { readonly message?: string };
}

/** The log of a service started by `svc up`: every line as JSON in `file`; warnings and worse also, in short, through `show`. */
export function openServiceLog(
  file: string,
  level: string,
  show: (line: string) => void,
): { logger: Logger; close(): void } {
  const descriptor = openSync(file, 'a', 0o600);
  if (fstatSync(descriptor).size > LONGEST_BYTES) ftruncateSync(descriptor);
  const write = (line: string) => {
    try {
      writeSync(descriptor, line);
    } catch (error) {
      // A full disk must not end the service; whoever looks at the terminal learns of it.
      show(`svc: the log cannot be written: ${String(error)}`);
    }
    const record = JSON.parse(line) as Line;
    if (record.level >= WARNING) show(shortLine(line, record));
  };
  return {
    logger: createLogger({ level, pretty: false, destination: { write } }),
    close: () => closeSync(descriptor),
  };
}

/** One line of text: the stack of an error is in the log. */
function shortLine(line: string, { err }: Line): string {
  const [first = ''] = prettyLine(line).split('\n');
  return err?.message === undefined ? first : `${first}: ${err.message.split('\n')[0]}`;
}
