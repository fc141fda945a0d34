/**
 * The explicit rules that convert the text of query strings to numbers and booleans. A value that no rule covers
 * stays text, so that validation rejects it.
 */

const INTEGER = /^-?\d+$/;
const DECIMAL = /^-?\d+(?:\.\d+)?$/;

/**
 * Whether the query of a URL is valid percent-encoded UTF-8. Any other encoding would decode to a different text than
 * intended, such as the name of a different file.
 */
export function isWellEncoded(url: string): boolean {
  const start = url.indexOf('?');
  if (start < 0) return true;
  try {
    decodeURIComponent(url.slice(start + 1));
    return true;
  } catch {
    return false;
  }
}

/** A copy of `query` with each value converted, if possible, to the type that `schema` declares. */
export function convertQuery(schema: unknown, query: unknown): unknown {
  if (!isRecord(query) || !isRecord(schema) || !isRecord(schema.properties)) return query;
  const converted: Record<string, unknown> = { ...query };
  for (const [name, property] of Object.entries(schema.properties)) {
    const text = converted[name];
    if (typeof text === 'string' && isRecord(property)) {
      converted[name] = convertText(property.type, text);
    }
  }
  return converted;
}

function convertText(type: unknown, text: string): unknown {
  if (type === 'integer' && INTEGER.test(text)) return toInteger(text);
  if (type === 'number' && DECIMAL.test(text)) return Number(text);
  if (type === 'boolean' && (text === 'true' || text === 'false')) return text === 'true';
  return text;
}

/** Integers beyond the safe range become the largest safe integer, so that limits clamp them. */
function toInteger(text: string): number {
  const bound = Number.MAX_SAFE_INTEGER;
  return Math.max(-bound, Math.min(bound, Number(text)));
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}
