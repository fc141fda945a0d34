import { ERROR_CODE_KEYWORD, MAX_BYTES_KEYWORD, OPTIONAL_BODY_KEYWORD } from '@svc/contract';

type Json = Record<string, unknown>;

const OWN_KEYWORDS: ReadonlySet<string> = new Set([
  ERROR_CODE_KEYWORD,
  OPTIONAL_BODY_KEYWORD,
  MAX_BYTES_KEYWORD,
]);
/** Description of a successful answer for which the route has none. */
const FILLER = 'Default Response';

/** Replaces the keywords specific to this service with standard ones. */
export function tidy(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(tidy);
  if (typeof node !== 'object' || node === null) return node;
  const entries = Object.entries(node)
    .filter(([key]) => !OWN_KEYWORDS.has(key))
    .map(
      ([key, value]) => [key, key === 'requestBody' ? requestBody(value) : tidy(value)] as const,
    );
  const copy: Json = Object.fromEntries(entries);
  return copy.description === FILLER ? { ...copy, description: 'Success.' } : copy;
}

function requestBody(body: unknown): unknown {
  const optional = JSON.stringify(body).includes(`"${OPTIONAL_BODY_KEYWORD}":true`);
  const tidied = tidy(body) as Json;
  return optional ? { ...tidied, required: false } : tidied;
}
