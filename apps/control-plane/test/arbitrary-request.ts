import * as fc from 'fast-check';

type Json = Record<string, unknown>;

/** Text that often breaks programs. */
const TEXT = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 80 }),
  fc.constantFrom('', '\0', '\ud800', '/', '..', '__proto__', 'constructor', '9'.repeat(40)),
  fc.constantFrom('x'.repeat(300), 'ada@example.com', '123456', 'https://[::1]/', '-1', '1e999'),
  fc.constantFrom('llm', 'default', 'deictic'),
);

/** Any JSON value. */
const ANYTHING: fc.Arbitrary<unknown> = fc.oneof(
  fc.jsonValue({ maxDepth: 3 }),
  TEXT,
  fc.constantFrom(null, true, -0, 1.5, Number.MAX_VALUE, -1, 2 ** 53),
);

/**
 * Values that mostly match a schema of the document and sometimes deviate from it anywhere, so that they fail at
 * any check, not only at the first one.
 */
export function valuesNear(schema: unknown, document: Json, depth = 0): fc.Arbitrary<unknown> {
  if (depth > 6) return ANYTHING;
  const near = shaped(resolve(schema, document), document, depth);
  return fc.oneof({ arbitrary: near, weight: 9 }, { arbitrary: ANYTHING, weight: 1 });
}

/** A segment of a path or a value of a query, percent-encoded. */
export const URL_TEXT = TEXT.map((text) => encodeURIComponent(text.toWellFormed()));

function shaped(schema: Json, document: Json, depth: number): fc.Arbitrary<unknown> {
  const next = (inner: unknown) => valuesNear(inner, document, depth + 1);
  const choices = schema.anyOf ?? schema.oneOf;
  if (Array.isArray(choices)) return fc.oneof(...choices.map(next));
  if (Array.isArray(schema.enum)) return fc.constantFrom(...schema.enum);
  if ('const' in schema) return fc.constant(schema.const);
  switch (schema.type) {
    case 'object':
      return objects(schema, next);
    case 'array':
      return fc.array(next(schema.items ?? {}), { maxLength: 4 });
    case 'string':
      return Array.isArray(schema.examples)
        ? fc.oneof(fc.constantFrom(...schema.examples), TEXT)
        : TEXT;
    case 'integer':
      return fc.oneof(fc.integer({ min: -2, max: 10 }), fc.integer());
    case 'number':
      return fc.double();
    case 'boolean':
      return fc.boolean();
    default:
      return ANYTHING;
  }
}

function objects(schema: Json, next: (inner: unknown) => fc.Arbitrary<unknown>) {
  const properties = (schema.properties ?? {}) as Json;
  const known: Record<string, fc.Arbitrary<unknown>> = Object.fromEntries(
    Object.entries(properties).map(([name, inner]) => [name, next(inner)] as const),
  );
  const required = Array.isArray(schema.required) ? schema.required.map(String) : [];
  const record = fc.record(known, { requiredKeys: required });
  const extra = fc.dictionary(
    fc.oneof(fc.constantFrom('LLM_API_KEY', 'LLM_BASE_URL', 'TASK', 'A'), TEXT),
    next(schema.additionalProperties ?? {}),
    { maxKeys: 3 },
  );
  return fc.tuple(record, extra).map(([fixed, free]) => ({ ...free, ...fixed }));
}

function resolve(schema: unknown, document: Json): Json {
  // `true` allows anything.
  const record = (typeof schema === 'object' && schema !== null ? schema : {}) as Json;
  if (typeof record.$ref !== 'string') return record;
  const parts = record.$ref.split('/').slice(1);
  return resolve(
    parts.reduce<unknown>((node, part) => (node as Json)[part], document),
    document,
  );
}
