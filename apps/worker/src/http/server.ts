import { INTERNAL_PREFIX } from '@svc/contract';
import {
  type CertificatePair,
  createHttpServer,
  type HttpServer,
  registerCertificateMetrics,
  registerHttpMetrics,
  type Tracing,
} from '@svc/service-kit';
import { routeUpgrades } from '@svc/service-kit/websocket';
import type { WorkerLogger } from '../logger.ts';
import type { SessionRegistry } from '../sessions/registry.ts';
import { callerFieldsOf } from './caller-fields.ts';
import type { WorkerContext } from './context.ts';
import { requireControlPlane } from './guards.ts';
import { cancelRoute } from './routes/cancel.ts';
import { configUpdateRoute } from './routes/config-update.ts';
import { createRoute } from './routes/create.ts';
import { destroyRoute } from './routes/destroy.ts';
import { downloadRoute } from './routes/download.ts';
import { execRoute } from './routes/exec.ts';
import { getRoute } from './routes/get.ts';
import { healthRoute } from './routes/health.ts';
import { listRoute } from './routes/list.ts';
import { logsRoute } from './routes/logs.ts';
import { metricsRoute } from './routes/metrics.ts';
import { pauseRoute } from './routes/pause.ts';
import { portRoute } from './routes/port.ts';
import { resumeRoute } from './routes/resume.ts';
import { HANDSHAKE_MS } from './routes/session-socket.ts';
import { uploadRoute } from './routes/upload.ts';

const ROUTES = [
  cancelRoute,
  configUpdateRoute,
  createRoute,
  destroyRoute,
  downloadRoute,
  execRoute,
  getRoute,
  healthRoute,
  listRoute,
  logsRoute,
  pauseRoute,
  portRoute,
  resumeRoute,
];

/** The worker's HTTPS server: the internal API for the control plane, and metrics. */
export function createWorkerServer(
  context: WorkerContext,
  options: {
    readonly logger: WorkerLogger;
    readonly tls: CertificatePair;
    readonly tracing: Tracing | undefined;
    readonly sessions: SessionRegistry;
  },
): HttpServer {
  const { logger, tls, tracing, sessions } = options;
  const app = createHttpServer({
    logger,
    tls,
    caller: callerFieldsOf(context.registry, sessions),
    // A worker takes part in the traces of those that call it, and begins none.
    tracing: tracing && { tracing, isFromOutside: () => false },
  });
  routeUpgrades(app, HANDSHAKE_MS);
  registerHttpMetrics(app, context.metrics, 'worker');
  registerCertificateMetrics(context.metrics, 'worker', tls);
  context.drain.watch(app);
  metricsRoute(app, context);
  app.register(
    async (internal) => {
      const scope = internal as unknown as HttpServer;
      requireControlPlane(scope, context.verify);
      for (const route of ROUTES) route(scope, context);
      // In a scope of its own, since it accepts no JSON.
      scope.register(async (files) => uploadRoute(files as unknown as HttpServer, context));
    },
    { prefix: INTERNAL_PREFIX },
  );
  return app;
}
