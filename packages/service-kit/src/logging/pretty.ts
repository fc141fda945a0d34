/** Short log lines for a person at a terminal. */

const LEVELS: Readonly<Record<number, string>> = {
  10: 'trace',
  20: 'debug',
  30: 'info ',
  40: 'warn ',
  50: 'error',
  60: 'fatal',
};
const COLOURS: Readonly<Record<number, string>> = {
  40: '\u001b[33m',
  50: '\u001b[31m',
  60: '\u001b[31m',
};
const RESET = '\u001b[0m';
/** Members that the line shows differently, or that are of no use to a reader. */
const HIDDEN: ReadonlySet<string> = new Set([
  'level',
  'time',
  'msg',
  'pid',
  'hostname',
  'component',
  'err',
]);

/** Converts one JSON line of the logger to a short line; other text passes unchanged. */
export function prettyLine(json: string): string {
  const record = parse(json);
  if (record === undefined) return json;
  const level = Number(record.level);
  const time = new Date(String(record.time)).toTimeString().slice(0, 8);
  const component = record.component === undefined ? '' : `${String(record.component)}: `;
  const members = Object.entries(record)
    .filter(([name]) => !HIDDEN.has(name))
    .map(
      ([name, value]) => ` ${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`,
    );
  const head = `${time} ${COLOURS[level] ?? ''}${LEVELS[level] ?? level}${COLOURS[level] ? RESET : ''}`;
  return `${head} ${component}${String(record.msg ?? '')}${members.join('')}${errorPart(record.err)}\n`;
}

function errorPart(error: unknown): string {
  if (typeof error !== 'object' || error === null) return '';
  const { stack, message } = error as { stack?: unknown; message?: unknown };
  return `\n    ${String(stack ?? message).replaceAll('\n', '\n    ')}`;
}

function parse(json: string): Record<string, unknown> | undefined {
  try {
    return JSON.parse(json) as Record<string, unknown>;
  } catch {
    return undefined;
  }
}
