import { tidy } from './tidy.ts';

type Json = Record<string, unknown>;

/**
 * Moves every schema with a title to `components`, under that title, and references it from there. Two different
 * schemas with the same title are an error.
 */
export function hoistComponents<T extends object>(document: T): T {
  const schemas: Json = {};
  const paths = hoist(tidy((document as Json).paths), schemas);
  const components = (document as Json).components as Json | undefined;
  return { ...document, paths, components: { ...components, schemas } };
}

function hoist(node: unknown, schemas: Json): unknown {
  if (Array.isArray(node)) return node.map((item) => hoist(item, schemas));
  if (!isRecord(node)) return node;
  const copy = Object.fromEntries(
    Object.entries(node).map(([key, value]) => [key, hoist(value, schemas)]),
  );
  const { title } = copy;
  if (typeof title !== 'string' || copy.type === undefined) return copy;
  const { title: _title, ...schema } = copy;
  const known = schemas[title];
  if (known !== undefined && JSON.stringify(known) !== JSON.stringify(schema)) {
    throw new Error(`Two different schemas are called ${title}.`);
  }
  schemas[title] = schema;
  return { $ref: `#/components/schemas/${title}` };
}

function isRecord(value: unknown): value is Json {
  return typeof value === 'object' && value !== null;
}
