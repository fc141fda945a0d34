import type { TObject, TSchema } from 'typebox';
import { Compile } from 'typebox/compile';

interface Form {
  readonly keys: readonly string[];
  Check(value: unknown): boolean;
}

/**
 * A check of frames by their `type`: gives the frame with the fields of its form and nothing else, or
 * undefined for one of no known form. `union` holds objects with a literal `type` each.
 */
export function frameReader<T>(union: {
  readonly anyOf: readonly TSchema[];
}): (value: unknown) => T | undefined {
  const forms = new Map<unknown, Form>();
  for (const member of union.anyOf) {
    const { properties } = member as TObject;
    const type = (properties.type as (TSchema & { const?: unknown }) | undefined)?.const;
    const compiled = Compile(member);
    forms.set(type, { keys: Object.keys(properties), Check: (value) => compiled.Check(value) });
  }
  return (value) => {
    if (typeof value !== 'object' || value === null || !('type' in value)) return undefined;
    const form = forms.get(value.type);
    if (form === undefined || !form.Check(value)) return undefined;
    return pick(value, form.keys) as T;
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
