import { WorkerListQuery, WorkerSandboxList } from '@svc/contract';
import type { HttpServer } from '@svc/service-kit';
import type { WorkerContext } from '../context.ts';

/** `GET /sandboxes`: live and recently destroyed sandboxes, of one tenant or of all. */
export function listRoute(app: HttpServer, { registry }: WorkerContext): void {
  app.get(
    '/sandboxes',
    { schema: { querystring: WorkerListQuery, response: { 200: WorkerSandboxList } } },
    async (request) => {
      const { tenant_id: tenant } = request.query;
      const wanted = registry
        .all()
        .filter(({ assignment }) => tenant === undefined || assignment.tenant_id === tenant);
      return { sandboxes: wanted.map((sandbox) => sandbox.record()) };
    },
  );
}
