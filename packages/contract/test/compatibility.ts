import type { Schema } from './internal-schemas.ts';

/**
 * What a sender may send by its schema, and a receiver refuses by its own, as sentences. Conservative: a bound that the two
 * state in different ways counts as a difference.
 */
export function differences(sent: Schema, received: Schema, at = ''): string[] {
  if (sent.anyOf !== undefined)
    return sent.anyOf.flatMap((each) => differences(each, received, at));
  if (received.anyOf !== undefined) return differencesToAny(sent, received.anyOf, at);
  const values = valuesOf(sent);
  if (values !== undefined) {
    const refused = values.filter((value) => !accepts(received, value));
    return refused.map((value) => `${at}: ${JSON.stringify(value)} is refused`);
  }
  if (received.enum !== undefined || received.const !== undefined) return [`${at}: is now open`];
  if (received.type !== undefined && !isType(sent.type, received.type)) {
    return [`${at}: ${sent.type} for ${received.type}`];
  }
  return [
    ...differentBounds(sent, received, at),
    ...differentProperties(sent, received, at),
    ...differentParts(sent, received, at),
  ];
}

function valuesOf(schema: Schema): readonly unknown[] | undefined {
  return 'const' in schema ? [schema.const] : (schema['x-known'] ?? schema.enum);
}

/** Whether a receiver accepts a single value. */
function accepts(received: Schema, value: unknown): boolean {
  if ('const' in received) return received.const === value;
  if (received.enum !== undefined) return received.enum.includes(value);
  if (typeof value !== 'string' || received.pattern === undefined) return true;
  return new RegExp(received.pattern).test(value);
}

function differencesToAny(sent: Schema, branches: readonly Schema[], at: string): string[] {
  const all = branches.map((branch) => differences(sent, branch, at));
  return all.find((found) => found.length === 0) ?? all[0] ?? [];
}

function isType(sent: string | undefined, received: string): boolean {
  return sent === received || (sent === 'integer' && received === 'number');
}

const UPPER = ['maximum', 'maxLength', 'maxItems'] as const;
const LOWER = ['minimum', 'minLength', 'minItems'] as const;
const FORM = ['pattern', 'format'] as const;

function differentBounds(sent: Schema, received: Schema, at: string): string[] {
  const { POSITIVE_INFINITY, NEGATIVE_INFINITY } = Number;
  return [
    ...UPPER.filter(
      (key) => (sent[key] ?? POSITIVE_INFINITY) > (received[key] ?? POSITIVE_INFINITY),
    ),
    ...LOWER.filter(
      (key) => (sent[key] ?? NEGATIVE_INFINITY) < (received[key] ?? NEGATIVE_INFINITY),
    ),
    ...FORM.filter((key) => received[key] !== undefined && sent[key] !== received[key]),
  ].map((key) => `${at}: ${key} ${sent[key]} for ${received[key]}`);
}

function differentProperties(sent: Schema, received: Schema, at: string): string[] {
  const { properties = {}, required = [] } = sent;
  const missing = (received.required ?? []).filter((name) => !required.includes(name));
  const known = Object.entries(received.properties ?? {});
  const refused = Object.keys(properties).filter(
    (name) => received.additionalProperties === false && received.properties?.[name] === undefined,
  );
  return [
    ...missing.map((name) => `${at}/${name}: may be missing`),
    ...refused.map((name) => `${at}/${name}: is refused`),
    ...known.flatMap(([name, schema]) => {
      const own = properties[name];
      return own === undefined ? [] : differences(own, schema, `${at}/${name}`);
    }),
  ];
}

/** Of lists and of maps. */
function differentParts(sent: Schema, received: Schema, at: string): string[] {
  const { items, additionalProperties: map } = received;
  const ofItems = items === undefined ? [] : differences(sent.items ?? {}, items, `${at}/*`);
  if (typeof map !== 'object') return ofItems;
  const own = typeof sent.additionalProperties === 'object' ? sent.additionalProperties : {};
  return [...ofItems, ...differences(own, map, `${at}/*`)];
}
