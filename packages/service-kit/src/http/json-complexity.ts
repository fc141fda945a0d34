/** Maximum nesting of a body: recursion over it, here and in the database, must stay far from a stack overflow. */
export const MAX_JSON_DEPTH = 100;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const OPENING = new Set([0x5b, 0x7b]);
const CLOSING = new Set([0x5d, 0x7d]);

/**
 * Whether a JSON text nests objects and lists deeper than {@link MAX_JSON_DEPTH}, or has more than `maxValues` values, each
 * of which takes memory, however short it is.
 */
export function isTooComplex(json: string, maxValues = Number.POSITIVE_INFINITY): boolean {
  if (json.length <= MAX_JSON_DEPTH) return false;
  let depth = 0;
  let values = 1;
  let inString = false;
  for (let at = 0; at < json.length; at += 1) {
    const code = json.charCodeAt(at);
    if (code === QUOTE) inString = !inString;
    else if (inString && code === BACKSLASH) at += 1;
    else if (inString) continue;
    else if (CLOSING.has(code)) depth -= 1;
    else if (code === COMMA) values += 1;
    else if (OPENING.has(code)) {
      depth += 1;
      values += 1;
    }
    if (depth > MAX_JSON_DEPTH || values > maxValues) return true;
  }
  return false;
}
