import { LIMITS, WorkerListQuery, WorkerSandboxList } from '@svc/contract';
import type { HttpServer } from '@svc/service-kit';
import type { WorkerContext } from '../context.ts';

/** `GET /sandboxes`: live sandboxes and the last destroyed ones, of one tenant or of all. */
export function listRoute(app: HttpServer, { registry }: WorkerContext): void {
  app.get(
    '/sandboxes',
    { schema: { querystring: WorkerListQuery, response: { 200: WorkerSandboxList } } },
    async (request) => {
      const { tenant_id: tenant } = request.query;
      const wanted = registry
        .all()
        .filter(({ assignment }) => tenant === undefined || assignment.tenant_id === tenant);
      const destroyed = wanted.filter(({ isLive }) => !isLive);
      const shown = new Set(destroyed.slice(-LIMITS.destroyedRecordsListed));
      const listed = wanted.filter((sandbox) => sandbox.isLive || shown.has(sandbox));
      return { sandboxes: listed.map((sandbox) => sandbox.record()) };
    },
  );
}
