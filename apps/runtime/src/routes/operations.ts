import type { Exposure, HttpServer } from '@svc/service-kit';
import { SingleFlight, withDeadline } from '@svc/service-kit/concurrency';
import { Type } from 'typebox';
import type { SessionDirectory } from '../control-plane/session-directory.ts';
import type { RuntimeMetrics } from '../metrics.ts';

const CHECK_MS = 3_000;
const METRICS_PATH = '/metrics';
/** The routes by which load balancers watch a runtime host. */
const HEALTH_PATHS: ReadonlySet<string> = new Set(['/healthz', '/readyz']);

interface Watched {
  readonly sessions: Pick<SessionDirectory, 'check'>;
  readonly metrics: RuntimeMetrics;
}

/** At which addresses a route is served when the runtime host has an internal one. */
export function exposureOf(route: string): Exposure {
  if (route === METRICS_PATH) return 'internal';
  return HEALTH_PATHS.has(route) ? 'both' : 'public';
}

/** `GET /healthz`, `/readyz` and `/metrics`. Ready means that sessions can be looked up. */
export function operationRoutes(app: HttpServer, { sessions, metrics }: Watched): void {
  const status = <const T extends string>(text: T) => ({
    schema: { response: { 200: Type.Object({ status: Type.Literal(text) }) } },
  });
  app.get('/healthz', status('ok'), async () => ({ status: 'ok' as const }));
  const checks = new SingleFlight<void>();
  app.get('/readyz', status('ready'), async () => {
    await checks.run(() => sessions.check(withDeadline(undefined, CHECK_MS)));
    return { status: 'ready' as const };
  });
  app.get(METRICS_PATH, async (_request, reply) =>
    reply.type('text/plain; version=0.0.4; charset=utf-8').send(await metrics.registry.metrics()),
  );
}
