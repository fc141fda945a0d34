import { isTooComplex } from '@svc/service-kit';
import type { TObject, TSchema } from 'typebox';
import { Compile } from 'typebox/compile';

/** More than any frame has. Values as short as possible take twenty times their text when they are parsed. */
const MAX_VALUES = 65_536;

interface Schema {
  readonly keys: readonly string[];
  Check(value: unknown): boolean;
}

/**
 * A function that validates a frame against the schema of its `type`. It returns the frame with the fields of the
 * schema only, or undefined when the frame does not match. `union`: object schemas, each with a literal `type`.
 */
export function frameReader<T>(union: {
  readonly anyOf: readonly TSchema[];
}): (value: unknown) => T | undefined {
  const schemas = new Map<unknown, Schema>();
  for (const member of union.anyOf) {
    const { properties } = member as TObject;
    const type = (properties.type as (TSchema & { const?: unknown }) | undefined)?.const;
    const compiled = Compile(member);
    schemas.set(type, { keys: Object.keys(properties), Check: (value) => compiled.Check(value) });
  }
  return (value) => {
    if (typeof value !== 'object' || value === null || !('type' in value)) return undefined;
    const schema = schemas.get(value.type);
    if (schema === undefined || !schema.Check(value)) return undefined;
    return pick(value, schema.keys) as T;
  };
}

/** Parses JSON of a guest, a client or a customer's server; undefined when it is none, or nests too deep, or has too many values. */
export function parseUntrusted(bytes: Buffer): unknown {
  const text = bytes.toString('utf8');
  if (isTooComplex(text, MAX_VALUES)) return undefined;
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function pick(value: object, keys: readonly string[]): Record<string, unknown> {
  const picked: Record<string, unknown> = {};
  for (const key of keys) {
    const field: unknown = Reflect.get(value, key);
    if (field !== undefined) picked[key] = field;
  }
  return picked;
}
