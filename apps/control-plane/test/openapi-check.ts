import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';

type Json = Record<string, unknown>;

/** Checks answers against the published OpenAPI document. */
export class OpenapiCheck {
  readonly document: Json;
  readonly #ajv: Ajv2020;

  constructor(document: Json) {
    this.document = document;
    this.#ajv = new Ajv2020({ strict: false, allErrors: true });
    addFormats.default(this.#ajv);
    this.#ajv.addSchema(document, 'openapi');
  }

  /** Every operation, as `METHOD /path`. */
  operations(): string[] {
    return Object.entries(this.document.paths as Json).flatMap(([path, item]) =>
      Object.keys(item as Json).map((method) => `${method.toUpperCase()} ${path}`),
    );
  }

  /** Describes how an answer deviates from the document; undefined when it does not. */
  problemOf(
    method: string,
    path: string,
    status: number,
    type: string,
    body: string,
  ): string | undefined {
    // A URL that cannot be decoded matches no route.
    if (status === 400 && body.includes('"code":"invalid_url"')) return undefined;
    const template = this.#templateOf(path);
    if (template === undefined) return status === 404 ? undefined : `${path} is not documented`;
    const operation = (this.#paths()[template] as Json)[method.toLowerCase()] as Json | undefined;
    if (operation === undefined)
      return status === 405 ? undefined : `${method} ${path} is not documented`;
    const responses = operation.responses as Json;
    const response = (responses[status] ?? responses.default) as Json | undefined;
    if (response === undefined) return `${method} ${path}: status ${status} is not documented`;
    if (response.content === undefined && body === '' && type === '') return undefined;
    const mediaType = type.split(';')[0] ?? '';
    const content = response.content as Json | undefined;
    if (content?.['*/*'] !== undefined) return undefined;
    const media = content?.[mediaType];
    if (media === undefined) return `${method} ${path}: ${status} ${mediaType} is not documented`;
    const problem = this.#codeProblem(response, mediaType, body);
    if (problem !== undefined || !mediaType.endsWith('json')) return problem;
    const pointer = [
      'paths',
      template,
      method.toLowerCase(),
      'responses',
      status,
      'content',
      mediaType,
      'schema',
    ];
    const validate = this.#ajv.getSchema(`openapi#/${pointer.map(pointerPart).join('/')}`);
    if (validate === undefined) return `${method} ${path}: ${status} has no schema`;
    return validate(JSON.parse(body)) ? undefined : this.#ajv.errorsText(validate.errors);
  }

  #codeProblem(response: Json, mediaType: string, body: string): string | undefined {
    if (mediaType !== 'application/problem+json') return undefined;
    const { code } = JSON.parse(body) as { code: string };
    return String(response.description).includes(`\`${code}\``)
      ? undefined
      : `the code ${code} is not documented`;
  }

  #paths(): Json {
    return this.document.paths as Json;
  }

  #templateOf(path: string): string | undefined {
    const exact = path.split('?')[0] ?? '';
    const templates = Object.keys(this.#paths());
    if (templates.includes(exact)) return exact;
    return templates.find((template) =>
      // The last part of a path to a file may have slashes.
      new RegExp(`^${template.replace(/\{path\}$/, '.*').replace(/\{[^}]+\}/g, '[^/]+')}$`).test(
        exact,
      ),
    );
  }
}

function pointerPart(part: string | number): string {
  return encodeURIComponent(String(part).replaceAll('~', '~0').replaceAll('/', '~1'));
}
