import { checkPath, FileQuery, OCTET_STREAM_MEDIA_TYPE, WorkerSandboxParams } from '@svc/contract';
import type { HttpServer } from '@svc/service-kit';
import { download } from '../../files/download.ts';
import { callerSignal } from '../caller-signal.ts';
import type { WorkerContext } from '../context.ts';

/** `GET /sandboxes/:id/files?path=`: the content of a file, with its length if that is known. */
export function downloadRoute(app: HttpServer, context: WorkerContext): void {
  app.get(
    '/sandboxes/:id/files',
    // A HEAD request would read the whole file for nothing.
    { exposeHeadRoute: false, schema: { params: WorkerSandboxParams, querystring: FileQuery } },
    async (request, reply) => {
      const { path } = request.query;
      checkPath(path);
      const sandbox = context.registry.get(request.params.id);
      const caller = callerSignal(reply, context);
      const { size, body } = await download(sandbox, path, context.transfers, caller);
      if (size !== undefined) reply.header('content-length', size);
      return reply.type(OCTET_STREAM_MEDIA_TYPE).header('cache-control', 'no-store').send(body);
    },
  );
}
