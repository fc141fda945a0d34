import {
  closeSync,
  existsSync,
  fstatSync,
  ftruncateSync,
  openSync,
  renameSync,
  writeSync,
} from 'node:fs';
import { createLogger, type Logger, prettyLine } from '@svc/service-kit/logging';

const WARNING = 40;
/** A log larger than this becomes the older file, and a new one begins. */
const MAX_BYTES = 64 * 1024 * 1024;

/** The fields of a log line that are used here. */
interface Line {
  readonly level: number;
  readonly err?: { readonly message?: string };
}

export interface ServiceLog {
  readonly logger: Logger;
  /** Passes no more lines to `show`. */
  stopShowing(): void;
  close(): void;
}

/**
 * Opens the log of a service started by `svc up`. Every line goes to `file` as JSON; warnings and errors are also
 * passed to `show`, shortened to one line. A log that has grown too large goes on in a new file, and the last such one is kept
 * as `<file>.1`, unless it is far too large.
 */
export function openServiceLog(
  file: string,
  level: string,
  show: (line: string) => void,
): ServiceLog {
  let isShowing = true;
  const showLine = (line: string) => {
    if (isShowing) show(line);
  };
  const open = () => openSync(file, 'a', 0o600);
  let descriptor = open();
  const rotate = () => {
    // It is not there after a rotation that failed half-way.
    if (existsSync(file)) renameSync(file, `${file}.1`);
    const next = open();
    closeSync(descriptor);
    descriptor = next;
  };
  const boundFile = () => {
    const { size } = fstatSync(descriptor);
    if (size <= MAX_BYTES) return;
    try {
      // One that could not be rotated must not grow without a bound, either.
      if (size > 2 * MAX_BYTES) ftruncateSync(descriptor);
      else rotate();
    } catch (error) {
      showLine(`svc: cannot begin a new log: ${String(error)}`);
    }
  };
  const write = (line: string) => {
    try {
      boundFile();
      writeSync(descriptor, line);
    } catch (error) {
      // A full disk must not end the service, so the failure is only shown.
      showLine(`svc: cannot write the log: ${String(error)}`);
    }
    const record = JSON.parse(line) as Line;
    if (record.level >= WARNING) showLine(shortLine(line, record));
  };
  return {
    logger: createLogger({ level, pretty: false, destination: { write } }),
    stopShowing: () => {
      isShowing = false;
    },
    close: () => closeSync(descriptor),
  };
}

/** A log line as one line of text, without the stack of its error. */
function shortLine(line: string, { err }: Line): string {
  const [first = ''] = prettyLine(line).split('\n');
  return err?.message === undefined ? first : `${first}: ${err.message.split('\n')[0]}`;
}
