import type { HttpServer } from '@svc/service-kit';
import { SingleFlight, withDeadline } from '@svc/service-kit/concurrency';
import { Type } from 'typebox';
import type { SessionDirectory } from '../control-plane/session-directory.ts';
import type { RuntimeMetrics } from '../metrics.ts';

const CHECK_MS = 3_000;

interface Watched {
  readonly sessions: Pick<SessionDirectory, 'check'>;
  readonly metrics: RuntimeMetrics;
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
  app.get('/metrics', async (_request, reply) =>
    reply.type('text/plain; version=0.0.4; charset=utf-8').send(await metrics.registry.metrics()),
  );
}
