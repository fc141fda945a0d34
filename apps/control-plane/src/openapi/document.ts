import swagger, { type FastifyDynamicSwaggerOptions } from '@fastify/swagger';
import type { HttpServer } from '@svc/service-kit';
import { hoistComponents } from './components.ts';
import { SECURITY_SCHEMES } from './security.ts';

const DESCRIPTION =
  'Computers for AI agents: isolated micro-VM sandboxes behind a small API. Errors are RFC 9457 problem details; match on `code`.';

const TAGS = [
  'Tenants',
  'Sign-in',
  'API keys',
  'Audit',
  'Billing',
  'Sandboxes',
  'Files',
  'Ports',
  'Sessions',
  'Usage',
  'Dashboard',
  'Workspaces',
  'Operations',
];

/** Collects the routes added after this into one OpenAPI 3.1 document, `app.swagger()`. */
export async function describeRoutes(
  app: HttpServer,
  options: { readonly baseUrl: string; readonly version: string },
): Promise<void> {
  const settings: FastifyDynamicSwaggerOptions = {
    openapi: {
      openapi: '3.1.0',
      info: { title: 'svc', version: options.version, description: DESCRIPTION },
      servers: [{ url: options.baseUrl }],
      tags: TAGS.map((name) => ({ name })),
      components: { securitySchemes: { ...SECURITY_SCHEMES } },
    },
    // A wildcard is a parameter that may contain slashes.
    transform: ({ schema, url }) => ({
      schema: nameWildcard(schema),
      url: url.replace(/\/\*$/, '/:path'),
    }),
    transformObject: (document) =>
      'openapiObject' in document
        ? hoistComponents(document.openapiObject)
        : document.swaggerObject,
  };
  await app.register(swagger, settings);
}

/** A schema whose parameter `*` is called `path`. */
function nameWildcard<T extends object>(schema: T): T {
  const { params } = schema as { params?: { properties?: Record<string, unknown> } };
  const { '*': path, ...others } = params?.properties ?? {};
  if (path === undefined) return schema;
  const properties = { ...others, path };
  return { ...schema, params: { type: 'object', properties, required: Object.keys(properties) } };
}
