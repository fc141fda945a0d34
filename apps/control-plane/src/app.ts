import { createHttpServer, type HttpServer, type HttpServerOptions } from '@svc/service-kit';
import { routeUpgrades } from '@svc/service-kit/websocket';
import { assignStatementOwners } from './auth/statement-owners.ts';
import { describeRoutes } from './openapi/document.ts';
import { apiKeyRoutes } from './routes/api-keys/index.ts';
import { auditRoutes } from './routes/audit/index.ts';
import { authRoutes } from './routes/auth/index.ts';
import { billingRoutes } from './routes/billing/index.ts';
import { catalogueRoutes } from './routes/catalogue/index.ts';
import { dashboardRoutes } from './routes/dashboard/index.ts';
import { internalRoutes } from './routes/internal/index.ts';
import { objectRoutes } from './routes/objects/index.ts';
import { operationRoutes } from './routes/operations/index.ts';
import { sandboxRoutes } from './routes/sandboxes/index.ts';
import { secretRoutes } from './routes/secrets/index.ts';
import { sessionRoutes } from './routes/sessions/index.ts';
import { tenantKeyRoutes } from './routes/tenant-keys/index.ts';
import { tenantRoutes } from './routes/tenants/index.ts';
import { usageRoutes } from './routes/usage/index.ts';
import { workspaceRoutes } from './routes/workspaces/index.ts';
import type { Route, Services } from './services.ts';

/** Settings of the server. */
export interface AppOptions extends HttpServerOptions {
  readonly baseUrl: string;
  readonly version: string;
  /** Runs before the routes are added, so that hooks see all of them. */
  readonly prepare?: (app: HttpServer) => void;
}

/** The time for a whole handshake of a WebSocket, in milliseconds. */
const HANDSHAKE_MS = 60_000;

/** Every route that customers may call. */
export const publicRoutes: readonly Route[] = [
  ...authRoutes,
  ...tenantRoutes,
  ...tenantKeyRoutes,
  ...apiKeyRoutes,
  ...secretRoutes,
  ...catalogueRoutes,
  ...auditRoutes,
  ...usageRoutes,
  ...dashboardRoutes,
  ...billingRoutes,
  ...sandboxRoutes,
  ...sessionRoutes,
  ...workspaceRoutes,
  ...operationRoutes,
];

/** The control plane's HTTP server, with every route, not yet listening. */
export async function createApp(options: AppOptions, services: Services): Promise<HttpServer> {
  const app = createHttpServer(options);
  app.decorateRequest('caller', undefined);
  app.decorateRequest('component', undefined);
  routeUpgrades(app, HANDSHAKE_MS);
  assignStatementOwners(app);
  options.prepare?.(app);
  await describeRoutes(app, options);
  for (const route of [...publicRoutes, ...objectRoutes, ...internalRoutes]) {
    route(app, services);
  }
  return app;
}
