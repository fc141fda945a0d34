const LONGEST_LINE = 160;
const MOST_CALL_LINES = 12;
const MOST_RESULT_LINES = 8;
/** What a call is best told by, where it has it. */
const TELLING = ['command', 'cmd', 'file_path', 'path', 'url', 'pattern', 'query'];

/** A call of a tool, in few lines: its name and what tells most about it. */
export function callText(name: string, given: unknown): string {
  const [first = '', ...more] = shorten(tellingOf(given), MOST_CALL_LINES);
  return [`${name} ${first}`.trimEnd(), ...more].join('\n');
}

/** What a tool answered, in few lines. */
export function resultText(content: string): string {
  return shorten(content.trimEnd(), MOST_RESULT_LINES).join('\n');
}

function tellingOf(given: unknown): string {
  if (typeof given !== 'object' || given === null) return String(given ?? '');
  const fields = given as Record<string, unknown>;
  for (const name of TELLING) {
    const value = fields[name];
    if (typeof value === 'string') return value;
    if (Array.isArray(value)) return value.join(' ');
  }
  return JSON.stringify(given);
}

function shorten(text: string, mostLines: number): string[] {
  const lines = text.split('\n');
  const shown = lines
    .slice(0, mostLines)
    .map((line) => (line.length > LONGEST_LINE ? `${line.slice(0, LONGEST_LINE)}…` : line));
  const left = lines.length - shown.length;
  return left > 0 ? [...shown, `… ${left} more lines`] : shown;
}
