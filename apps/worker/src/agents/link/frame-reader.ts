import type { TObject, TSchema } from 'typebox';
import { Compile } from 'typebox/compile';

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

function pick(value: object, keys: readonly string[]): Record<string, unknown> {
  const picked: Record<string, unknown> = {};
  for (const key of keys) {
    const field: unknown = Reflect.get(value, key);
    if (field !== undefined) picked[key] = field;
  }
  return picked;
}
