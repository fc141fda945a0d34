import type { HttpServer } from '@svc/service-kit';
import { withDeadline } from '@svc/service-kit';
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
  let checking: Promise<void> | undefined;
  app.get('/readyz', status('ready'), async () => {
    // One look at the control plane answers everybody who asks meanwhile.
    checking ??= sessions.check(withDeadline(undefined, CHECK_MS)).finally(() => {
      checking = undefined;
    });
    await checking;
    return { status: 'ready' as const };
  });
  app.get('/metrics', async (_request, reply) =>
    reply.type('text/plain; version=0.0.4; charset=utf-8').send(await metrics.registry.metrics()),
  );
}
