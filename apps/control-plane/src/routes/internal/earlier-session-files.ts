import { INTERNAL_PREFIX, OCTET_STREAM_MEDIA_TYPE, SessionFilesParams } from '@svc/contract';
import { workerOf } from '../../auth/component-authenticator.ts';
import type { Route } from '../../services.ts';

/**
 * `GET /internal/v1/sessions/{id}/files/{files_id}`: an archive from before there were chunks, for the worker of the
 * session's sandbox.
 */
export const earlierSessionFiles: Route<'componentAuth' | 'sessions'> = (
  app,
  { componentAuth, sessions },
) => {
  app.get(
    `${INTERNAL_PREFIX}/sessions/:id/files/:files_id`,
    {
      onRequest: componentAuth.worker,
      // HEAD would read the whole archive.
      exposeHeadRoute: false,
      schema: { hide: true, params: SessionFilesParams },
    },
    async (request, reply) => {
      const { params } = request;
      const archive = await sessions.earlierFiles.open({
        workerId: workerOf(request),
        sessionId: params.id,
        filesId: params.files_id,
      });
      reply.header('content-length', archive.length);
      return reply.type(OCTET_STREAM_MEDIA_TYPE).send(archive.body);
    },
  );
};
