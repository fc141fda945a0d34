import { createHttpServer, type HttpServer, type HttpServerOptions } from '@svc/service-kit';
import { describeRoutes } from './openapi/document.ts';
import { internalRoutes } from './routes/internal/index.ts';
import { operationRoutes } from './routes/operations/index.ts';
import { sandboxRoutes } from './routes/sandboxes/index.ts';
import { tenantRoutes } from './routes/tenants/index.ts';
import type { Services } from './services.ts';

/** What the server is besides its routes. */
export interface AppOptions extends HttpServerOptions {
  readonly baseUrl: string;
  readonly version: string;
  /** Runs before the routes are added, for what watches all of them. */
  readonly prepare?: (app: HttpServer) => void;
}

/** The control plane's HTTP server, with every route, not yet listening. */
export async function createApp(options: AppOptions, services: Services): Promise<HttpServer> {
  const app = createHttpServer(options);
  app.decorateRequest('caller', undefined);
  app.decorateRequest('workerId', undefined);
  options.prepare?.(app);
  await describeRoutes(app, options);
  for (const route of [...tenantRoutes, ...sandboxRoutes, ...operationRoutes, ...internalRoutes]) {
    route(app, services);
  }
  return app;
}
