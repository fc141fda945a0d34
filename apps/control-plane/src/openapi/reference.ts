type Json = Record<string, unknown>;

const METHODS = ['get', 'post', 'put', 'patch', 'delete'];
const STYLE = `
  :root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
  body { max-width: 60rem; margin: 0 auto; padding: 1rem; }
  code, pre { font: 0.9em ui-monospace, monospace; }
  pre { overflow-x: auto; padding: 0.75rem; border: 1px solid color-mix(in srgb, currentColor 25%, transparent); border-radius: 0.5rem; }
  table { border-collapse: collapse; width: 100%; }
  th, td { text-align: left; vertical-align: top; padding: 0.25rem 0.75rem 0.25rem 0; }
  section { margin-block: 2rem; } h3 code { font-size: 1.1em; }
  a { color: inherit; }`;

/** The OpenAPI document as one HTML page without scripts, fonts or images. */
export function renderReference(document: object): string {
  const { info, paths, components } = document as { info: Json; paths: Json; components?: Json };
  const operations = operationsOf(paths);
  const byTag = Map.groupBy(operations, ({ operation }) => String(asList(operation.tags)[0]));
  const contents = operations.map(
    ({ method, path, operation }) =>
      `<li><a href="#${text(operation.operationId)}"><code>${method} ${text(path)}</code></a> ${text(operation.summary)}</li>`,
  );
  return `<!doctype html><html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width"><title>${text(info.title)} API reference</title>
<style>${STYLE}</style></head><body>
<h1>${text(info.title)} API reference</h1><p>${text(info.description)}</p>
<p>Version ${text(info.version)}. The same as data: <a href="/openapi.json">/openapi.json</a>.</p>
<ul>${contents.join('')}</ul>
${[...byTag].map(([tag, group]) => `<h2>${text(tag)}</h2>${group.map(renderOperation).join('')}`).join('')}
<h2>Schemas</h2>${Object.entries(asRecord(components?.schemas)).map(renderSchema).join('')}
</body></html>`;
}

interface Operation {
  readonly method: string;
  readonly path: string;
  readonly operation: Json;
}

function operationsOf(paths: Json): Operation[] {
  return Object.entries(paths).flatMap(([path, item]) =>
    METHODS.filter((method) => method in asRecord(item)).map((method) => ({
      method: method.toUpperCase(),
      path,
      operation: asRecord(asRecord(item)[method]),
    })),
  );
}

function renderOperation({ method, path, operation }: Operation): string {
  const body = asRecord(asRecord(operation.requestBody).content);
  return `<section id="${text(operation.operationId)}"><h3><code>${method} ${text(path)}</code></h3>
<p><strong>${text(operation.summary)}.</strong> ${text(operation.description)}</p>
${renderParameters(asList(operation.parameters))}
${Object.entries(body)
  .map(
    ([type, media]) =>
      `<p>Body, <code>${text(type)}</code>:</p>${renderValue(asRecord(media).schema)}`,
  )
  .join('')}
${renderResponses(asRecord(operation.responses))}</section>`;
}

function renderParameters(parameters: readonly unknown[]): string {
  if (parameters.length === 0) return '';
  const rows = parameters.map((parameter) => {
    const { name, in: place, required, description, schema } = asRecord(parameter);
    const needed = required === true ? 'required' : 'optional';
    return `<tr><td><code>${text(name)}</code></td><td>${text(place)}, ${needed}</td><td>${text(description ?? asRecord(schema).description)}</td></tr>`;
  });
  return `<table><tbody>${rows.join('')}</tbody></table>`;
}

function renderResponses(responses: Json): string {
  const rows = Object.entries(responses).map(([status, response]) => {
    const { description, content } = asRecord(response);
    const bodies = Object.values(asRecord(content)).map((media) =>
      schemaName(asRecord(media).schema),
    );
    return `<tr><td><code>${text(status)}</code></td><td>${bodies.join(' ')}</td><td>${text(description)}</td></tr>`;
  });
  return `<table><tbody>${rows.join('')}</tbody></table>`;
}

function renderSchema([name, schema]: [string, unknown]): string {
  return `<section id="schema-${text(name)}"><h3>${text(name)}</h3>${renderValue(schema)}</section>`;
}

function renderValue(schema: unknown): string {
  return schemaName(schema) || `<pre>${text(JSON.stringify(schema, undefined, 2))}</pre>`;
}

/** A link to the schema, when it has a name. */
function schemaName(schema: unknown): string {
  const reference = asRecord(schema).$ref;
  if (typeof reference !== 'string') return '';
  const name = text(reference.split('/').at(-1));
  return `<a href="#schema-${name}">${name}</a>`;
}

function asRecord(value: unknown): Json {
  return typeof value === 'object' && value !== null ? (value as Json) : {};
}

function asList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function text(value: unknown): string {
  return String(value ?? '').replace(/[&<>"']/g, (character) => `&#${character.codePointAt(0)};`);
}
