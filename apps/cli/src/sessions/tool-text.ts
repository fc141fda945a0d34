const MAX_LINE_LENGTH = 160;
const MAX_CALL_LINES = 12;
const MAX_RESULT_LINES = 8;
/** The arguments that best describe a call; the first one present is shown. */
const DESCRIPTIVE_ARGUMENTS = ['command', 'cmd', 'file_path', 'path', 'url', 'pattern', 'query'];

/** Summarises a tool call in a few lines: its name and its most descriptive argument. */
export function callText(name: string, given: unknown): string {
  const [first = '', ...more] = shorten(descriptionOf(given), MAX_CALL_LINES);
  return [`${name} ${first}`.trimEnd(), ...more].join('\n');
}

/** Summarises a tool result in a few lines. */
export function resultText(content: string): string {
  return shorten(content.trimEnd(), MAX_RESULT_LINES).join('\n');
}

function descriptionOf(given: unknown): string {
  if (typeof given !== 'object' || given === null) return String(given ?? '');
  const fields = given as Record<string, unknown>;
  for (const name of DESCRIPTIVE_ARGUMENTS) {
    const value = fields[name];
    if (typeof value === 'string') return value;
    if (Array.isArray(value)) return value.join(' ');
  }
  return JSON.stringify(given);
}

function shorten(text: string, maxLines: number): string[] {
  const lines = text.split('\n');
  const shown = lines
    .slice(0, maxLines)
    .map((line) => (line.length > MAX_LINE_LENGTH ? `${line.slice(0, MAX_LINE_LENGTH)}…` : line));
  const left = lines.length - shown.length;
  return left > 0 ? [...shown, `… ${left} more lines`] : shown;
}
